"""A property that is computed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


S = TypeVar("S")


class lazy(Generic[T]):  # noqa: N801  # used like `property`
    """A property computed on first access and kept in the object's `__dict__`.

    Two threads that ask at once may both compute it, so it must have no effects.
    `functools.cached_property` keeps one lock for all objects of a class until Python 3.12: answers
    that are checked side by side wait for each other in it.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> Self | T:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._compute(instance)
        return value
