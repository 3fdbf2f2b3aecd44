"""Every error that Rota raises to its users; each message names the thing, what is wrong, and what to do.

    RotaError
    ├── ConfigError            a setting, URL, option or declaration that cannot be right
    │   └── DriverMissing      what a store or mail needs is not installed
    ├── ArgumentsError         arguments that do not fit the task or cannot be stored
    │   └── PayloadTooLarge    they fit, but weigh more than the limit
    ├── StoreError             the store refused or failed
    │   ├── StoreUnavailable   it cannot be reached, is full, or is locked by others
    │   └── SchemaMismatch     its tables are older or newer than this Rota
    ├── NotSupported           this store, or eager mode, cannot do what was asked
    ├── JobNotFound            no job has this id
    ├── MoveRefused            the job's state does not allow this
    ├── LeaseLost              the job is no longer this attempt's to finish
    ├── WaitTimeout            the job was not finished in time
    └── ResultError            there is no result to be had
        ├── JobFailed          the job failed or was cancelled
        └── ResultNotKept      the job succeeded, and its result was not kept

`Retry`, `Abandon` and `Snooze` are no errors: a task raises them to speak to its worker (`rota.signals`).
"""


class RotaError(Exception):
    """The base of everything that Rota raises on purpose."""


class ConfigError(RotaError, ValueError):
    """A setting, a URL, an option or a declaration that cannot be right."""


class DriverMissing(ConfigError, ImportError):
    """What a store, or mail, needs is not installed; the message names the extra that brings it."""


class ArgumentsError(RotaError, TypeError):
    """Arguments that do not fit the task's signature, or that would not come back as they were."""


class PayloadTooLarge(ArgumentsError):
    """Arguments that fit, but weigh more than `max_payload`."""


class StoreError(RotaError):
    """The store refused or failed."""


class StoreUnavailable(StoreError):
    """The store cannot be reached now, has no room, or is locked by others for too long."""


class SchemaMismatch(StoreError):
    """The store's tables are of another version than this Rota can use."""


class NotSupported(RotaError):
    """The store lacks a capability that was asked for."""


class JobNotFound(RotaError, LookupError):
    """No job has this id: it never existed, was deleted, or its retention ended."""


class MoveRefused(RotaError):
    """The job's present state does not allow what was asked."""


class LeaseLost(RotaError):
    """The job is no longer this attempt's: its lease was lost, so that another has it or had it. Roll back what was done."""


class WaitTimeout(RotaError, TimeoutError):
    """The job was not finished in the time given."""


class ResultError(RotaError):
    """There is no result to be had of this job."""


class JobFailed(ResultError):
    """The job failed or was cancelled; the message holds its reason."""


class ResultNotKept(ResultError):
    """The job succeeded, but its task does not keep results or this one could not be stored."""
