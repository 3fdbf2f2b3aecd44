"""Programs that use Rota, to start from."""
