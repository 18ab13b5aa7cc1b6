"""The exceptions of the client.

Their texts come from the server, from the system and from the caller's arguments; the key is never in them.
"""

from __future__ import annotations

from pyhapax.client.answers import FieldError, Problem


class HapaxError(Exception):
    """A request failed. `answered` counts the answers that a bulk request had got before it failed."""

    answered: int | None = None

    def __str__(self) -> str:
        text = self.sentence()
        return text if self.answered is None else f"{text} ({self.answered} answers had arrived)"

    def sentence(self) -> str:
        """Return what happened, without the number of answers."""
        return super().__str__()


class TransportError(HapaxError):
    """The server was not reached, the connection was lost, or the answer did not come from hapax."""


class ProblemError(HapaxError):
    """The server answered with a problem. Branch on `code`, or on the class."""

    def __init__(self, problem: Problem, retry_after_s: float | None = None) -> None:
        super().__init__(problem, retry_after_s)
        self.problem = problem
        self.retry_after_s = retry_after_s

    @property
    def status(self) -> int:
        """The status of the answer."""
        return self.problem.status

    @property
    def code(self) -> str:
        """The code of the problem, such as `id_conflict`; empty if the answer came from a proxy instead of hapax."""
        return self.problem.code

    @property
    def detail(self) -> str:
        """A sentence for people."""
        return self.problem.detail

    @property
    def errors(self) -> list[FieldError]:
        """The fields and parameters at fault."""
        return self.problem.errors

    @property
    def request_id(self) -> str | None:
        """The id of the request in the server's log."""
        return self.problem.request_id

    def sentence(self) -> str:
        """Return the status, the code and the detail."""
        return f"{self.status} {self.code}: {self.detail}" if self.code else f"{self.status}: {self.detail}"


class Unauthorized(ProblemError):
    """401: the key is missing, wrong, revoked or expired."""


class Forbidden(ProblemError):
    """403: the key may not do this."""


class NotFound(ProblemError):
    """404: there is no such collection, document or job."""


class Conflict(ProblemError):
    """409: the id, the name or the collection is in another state."""


class TooLarge(ProblemError):
    """413: a limit on bytes, lines or documents was exceeded."""


class InvalidValue(ProblemError):
    """422: a field or a parameter is not valid; `errors` names it."""


class TooManyRequests(ProblemError):
    """429: a limit of the key, the address or the number of collections is reached."""


class Unavailable(ProblemError):
    """503: the server is starting, stopping or overloaded, or its disk refused a write."""


class NoRoom(ProblemError):
    """507: the disk is full, or another limit on stored data is reached."""


CLASSES: dict[int, type[ProblemError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: TooLarge,
    422: InvalidValue,
    429: TooManyRequests,
    503: Unavailable,
    507: NoRoom,
}


def problem_error(problem: Problem, retry_after_s: float | None = None) -> ProblemError:
    """Return the exception for a problem. The status decides its class."""
    return CLASSES.get(problem.status, ProblemError)(problem, retry_after_s)
