"""Finding the app that `--app` names: a module's attribute, a factory, a dotted path or a file.

What cannot be found is told in one line that names what was searched, with exit status 2. What goes wrong inside the app's
own code is shown as that code's traceback, with exit status 1.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import traceback
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, NoReturn

import click

from rota.app import Rota
from rota.task import Task

_OUR_FRAMES = (__file__, "<frozen importlib", importlib.__file__)


class AppNotFound(click.ClickException):
    """There is no app by this name; one line says where it was looked for."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        click.echo(f"rota: {self.message}", file=file, err=file is None)


class AppBroken(click.ClickException):
    """The app's own code failed; its traceback was shown."""

    exit_code = 1

    def show(self, file: Any = None) -> None:
        click.echo(f"rota: {self.message}", file=file, err=file is None)


def find_app(spec: str, folder: Path) -> Rota:
    """The app that `spec` names, with `folder` searched first. Raises `AppNotFound` or `AppBroken`."""
    spec = spec.strip()
    if not spec:
        raise AppNotFound("--app is empty: name your app as module:attribute, for example --app shop.tasks:app")
    _search_first(folder)
    where, attribute = _split(spec)
    if _is_path(where):
        module = _of_file(where, folder, spec)
    else:
        module, attribute = _dotted(where, attribute, folder, spec)
    return _app_of(module, attribute or "app", spec)


def _split(spec: str) -> tuple[str, str | None]:
    head, colon, tail = spec.rpartition(":")
    if not colon or "/" in tail.rstrip("/") or "\\" in tail:  # a colon before a path is a drive's
        return spec, None
    if not head:
        raise AppNotFound(f"--app {spec!r} names no module before the colon: write module:attribute, such as shop.tasks:app")
    return head, tail.rstrip("/") or None


def _is_path(where: str) -> bool:
    return "/" in where or "\\" in where or where.endswith(".py") or where in {".", ".."}


# -- files --------------------------------------------------------------------------------------


def _of_file(where: str, folder: Path, spec: str) -> ModuleType:
    file, name = _module_of_file(where, folder, spec)
    module = _import(name, folder, spec)
    there = getattr(module, "__file__", None)
    if there is None or Path(there).resolve() != file:
        raise AppNotFound(f"--app {spec}: the name {name!r} is taken by {there or 'a module of Python'}; rename {file.name}")
    return module


def _module_of_file(where: str, folder: Path, spec: str) -> tuple[Path, str]:
    """The file, and the name under which its module is imported: as other programs do, so that its tasks are named alike."""
    path = folder / where.replace("\\", "/").rstrip("/")
    found = next((each for each in (path, path.with_suffix(".py")) if each.is_file()), None)
    if found is None and (path / "__init__.py").is_file():
        found = path / "__init__.py"
    if found is None and path.is_dir():
        modules = ", ".join(sorted(each.name for each in path.glob("*.py"))[:5]) or "no .py file"
        raise AppNotFound(f"--app {spec}: {path} is a directory without __init__.py; name a file in it (it has {modules})")
    if found is None:
        raise AppNotFound(f"--app {spec}: there is no file {path}")
    file = found.resolve()
    root, parts = _root_of(file, folder.resolve())
    for part in parts:
        if not part.isidentifier():
            raise AppNotFound(f"--app {spec}: {found} cannot be imported, for {part!r} is no name that Python can import")
    _search_first(root)
    return file, ".".join(parts)


def _root_of(file: Path, folder: Path) -> tuple[Path, list[str]]:
    """The directory that imports start from, and the module's name in parts."""
    root = file.parent
    if (root / "__init__.py").is_file():
        while (root / "__init__.py").is_file():
            root = root.parent
    elif file.is_relative_to(folder) and all(part.isidentifier() for part in file.relative_to(folder).with_suffix("").parts):
        root = folder
    parts = list(file.relative_to(root).with_suffix("").parts)
    return root, parts[:-1] if parts[-1] == "__init__" else parts


# -- modules ------------------------------------------------------------------------------------


def _dotted(where: str, attribute: str | None, folder: Path, spec: str) -> tuple[ModuleType, str | None]:
    if not all(part.isidentifier() for part in where.split(".")):
        raise AppNotFound(f"--app {spec}: {where!r} is no name of a module; write module:attribute or path/to/file.py")
    parent, _, last = where.rpartition(".")
    if attribute is None and parent and not _exists(where) and _exists(parent):
        return _import(parent, folder, spec), last
    return _import(where, folder, spec), attribute


def _exists(name: str) -> bool:
    """Whether there is such a module, as far as it can be told without running more than its packages."""
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError, AttributeError):
        return False
    except Exception:  # noqa: BLE001  # its package is broken, which the import will tell
        return True


def _import(name: str, folder: Path, spec: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")) and not _theirs(error):
            raise AppNotFound(_not_there(error.name, folder, spec)) from None
        _broken(f"{name} could not be imported", error)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  # a module may also call sys.exit
        _broken(f"{name} could not be imported", error)


def _not_there(missing: str, folder: Path, spec: str) -> str:
    said = f"--app {spec}: there is no module {missing!r} in {folder} or elsewhere on Python's path"
    first = missing.split(".")[0]
    for inner in ("src", "lib", "app"):
        if (folder / inner / first).is_dir() or (folder / inner / f"{first}.py").is_file():
            return f"{said}, but {inner}/ has one: pass --app-dir {inner}"
    return f"{said}: start from the directory that holds it, or name that with --app-dir"


# -- attributes ---------------------------------------------------------------------------------


def _app_of(module: ModuleType, attribute: str, spec: str) -> Rota:
    found: Any = module
    for part in attribute.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise AppNotFound(f"--app {spec}: {module.__name__} has no attribute {attribute!r}; {_apps_in(module)}") from None
    if isinstance(found, Rota):
        return found
    if callable(found) and not isinstance(found, type | Task):
        return _made(found, module, attribute, spec)
    what = f"the class {found.__name__}" if isinstance(found, type) else f"of type {type(found).__name__}"
    raise AppNotFound(f"--app {spec}: {attribute!r} is {what}, not a Rota app; {_apps_in(module)}")


def _made(factory: Any, module: ModuleType, attribute: str, spec: str) -> Rota:
    try:
        inspect.signature(factory).bind()
    except TypeError as error:
        raise AppNotFound(
            f"--app {spec}: {attribute}() cannot be called without arguments ({error}), so it is no factory; {_apps_in(module)}"
        ) from None
    except ValueError:
        pass  # it does not tell its signature
    try:
        app = factory()
    except Exception as error:  # noqa: BLE001  # theirs, shown as theirs
        _broken(f"{module.__name__}.{attribute}() failed", error)
    if isinstance(app, Rota):
        return app
    if inspect.iscoroutine(app):
        app.close()
    raise AppNotFound(
        f"--app {spec}: {attribute}() answered what is of type {type(app).__name__}, not a Rota app; {_apps_in(module)}"
    )


def _apps_in(module: ModuleType) -> str:
    names = [name for name, value in vars(module).items() if isinstance(value, Rota)]
    if not names:
        import pkgutil  # only for those who look in vain, not for every worker

        inner = [each.name for each in pkgutil.iter_modules(getattr(module, "__path__", []))]
        modules = f"; its modules: {', '.join(f'{module.__name__}.{name}' for name in inner[:8])}" if inner else ""
        return f"{module.__name__} has no Rota app at its top{modules}"
    return f"the Rota apps in {module.__name__}: {', '.join(f'{module.__name__}:{name}' for name in names)}"


# -- their errors -------------------------------------------------------------------------------


def _broken(what: str, error: BaseException) -> NoReturn:
    """Show the traceback of the app's own code, without the frames that led there."""
    if isinstance(error, SystemExit):
        raise AppBroken(f"{what}: it called sys.exit({error.code!r}); put that below `if __name__ == '__main__':`") from None
    told = traceback.TracebackException(type(error), error, _theirs(error))
    click.echo("".join(told.format()).rstrip(), err=True)
    raise AppBroken(f"{what}: {type(error).__name__}, see above") from None


def _theirs(error: BaseException) -> TracebackType | None:
    """The traceback from the first frame that is not the import machinery's."""
    step = error.__traceback__
    while step is not None and step.tb_frame.f_code.co_filename.startswith(_OUR_FRAMES):
        step = step.tb_next
    return step


def _search_first(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
