"""A cluster in a dictionary: for what is kept and found again, where a real API server would add nothing but time."""

# ruff: noqa: ARG002 - the namespace is always the same one
import copy
from typing import Any

from hedgerow_operator.kube import ClusterError, Kube

Body = dict[str, Any]


class SmallCluster(Kube):
    """Objects by kind and name, in one namespace; a name in `refused` makes every write to it fail."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Body] = {}
        self.refused: dict[str, Exception] = {}
        self.is_away = False

    async def list(self, kind: str, namespace: str | None = None) -> list[Body]:
        self._answer()
        return [copy.deepcopy(body) for (found, _), body in self.objects.items() if found == kind]

    async def get(self, kind: str, namespace: str | None, name: str) -> Body | None:
        self._answer()
        return copy.deepcopy(self.objects.get((kind, name)))

    async def create(self, kind: str, namespace: str | None, body: Body) -> Body | None:
        name = body["metadata"]["name"]
        self._answer(name)
        if (kind, name) in self.objects:
            return None
        made = copy.deepcopy(body)
        made["metadata"] |= {"uid": f"uid-{kind}-{name}", "resourceVersion": "1", "generation": 1}
        self.objects[kind, name] = made
        return copy.deepcopy(made)

    async def patch(self, kind: str, namespace: str | None, name: str, change: Body) -> Body | None:
        self._answer(name)
        if (kind, name) not in self.objects:
            return None
        for part, values in change.items():
            self.objects[kind, name].setdefault(part, {}).update(copy.deepcopy(values))
        return copy.deepcopy(self.objects[kind, name])

    async def patch_status(self, kind: str, namespace: str | None, name: str, status: Body) -> Body | None:
        return await self.patch(kind, namespace, name, {"status": status})

    async def delete(self, kind: str, namespace: str | None, name: str) -> None:
        self._answer(name)
        self.objects.pop((kind, name), None)

    def _answer(self, name: str = "") -> None:
        if self.is_away:
            raise ClusterError("The API server did not answer.")
        if name in self.refused:
            raise self.refused[name]
