"""Why nothing was run: a problem code of the contract, what happened, and what to do next."""


class Refusal(Exception):
    def __init__(self, code: str, detail: str, hint: "str | None" = None) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.hint = hint
