# SPDX-License-Identifier: Apache-2.0
"""The result of a check: one sentence for each part of the cloud."""

from oslo_upgradecheck import upgradecheck

from heat_plugins import foreign


class CheckReport:
    """The sentences of a check, and the worst of their codes."""

    def __init__(self) -> None:
        self._code = upgradecheck.Code.SUCCESS
        self._sentences: list[str] = []

    def good(self, sentence: str) -> None:
        self._say(upgradecheck.Code.SUCCESS, sentence)

    def warn(self, sentence: str) -> None:
        """Add a sentence on what works, but not as it should."""
        self._say(upgradecheck.Code.WARNING, sentence)

    def fail(self, sentence: str) -> None:
        """Add a sentence on what does not work, with the remedy."""
        self._say(upgradecheck.Code.FAILURE, sentence)

    def _say(self, code: upgradecheck.Code, sentence: str) -> None:
        self._code = max(self._code, code)
        self._sentences.append(foreign.line(sentence))

    def result(self) -> upgradecheck.Result:
        return upgradecheck.Result(self._code, ' '.join(self._sentences))
