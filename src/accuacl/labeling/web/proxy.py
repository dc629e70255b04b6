"""Log-in by an authenticating proxy, such as oauth2-proxy or Authelia, which names the user in a header.

Anybody can send a header, so it is trusted only in requests that come from the proxy's own address. Off unless the
person who starts the server names the header and the address.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import HTTPException, Request

from accuacl.base.errors import InputError
from accuacl.labeling.store import Person, Store, clean_name

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,99}")
ENDED = "Your access to this project has ended; ask its lead."


@dataclass(frozen=True)
class ProxyLogin:
    """header: who is asking. networks: where the proxy's requests come from. groups: the header with their groups.
    leads: names and groups that lead; empty: the page People says who leads.
    """

    header: str
    networks: tuple[Network, ...]
    groups: str = ""
    leads: frozenset[str] = frozenset()

    def person(self, request: Request, store: Store) -> Person | None:
        """Who is asking, added if they are new; None if the request is not the proxy's, or does not say.

        403 if their access has been revoked here.
        """
        name = self._named(request)
        if name is None:
            return None
        namesakes = [person for person in store.people() if person.name == name]
        known = next((person for person in namesakes if not person.revoked), None)
        if known is None and namesakes:
            raise HTTPException(403, ENDED)
        person = known or store.person_named(name)
        if not self.leads:
            return person
        leads = not self.leads.isdisjoint({name, *self._groups(request)})
        if leads == person.lead:
            return person
        try:
            store.set_role(name, leads)
        except InputError:  # the only lead, whom the proxy does not know as one, stays one until there is another
            return person
        return Person(person.id, person.name, lead=leads)

    def _named(self, request: Request) -> str | None:
        if not self._is_proxy(request.client.host if request.client else ""):
            return None
        values = request.headers.getlist(self.header)
        if len(values) != 1:  # of two, one may be the browser's own
            return None
        try:
            return clean_name(values[0], "a person")
        except InputError:
            return None

    def _groups(self, request: Request) -> set[str]:
        values = request.headers.getlist(self.groups) if self.groups else []
        return {group.strip() for group in values[0].split(",")} if len(values) == 1 else set()

    def _is_proxy(self, address: str) -> bool:
        try:
            peer = ipaddress.ip_address(address)
        except ValueError:
            return False
        peer = getattr(peer, "ipv4_mapped", None) or peer
        return any(peer in network for network in self.networks)


def proxy_login(
    header: str, addresses: Sequence[str], groups: str = "", leads: Sequence[str] = ()
) -> ProxyLogin | None:
    """From the options of `project serve`; None if no header is named.

    >>> proxy_login("Remote-User", ["127.0.0.1", "10.0.0.0/8"]).networks[1]
    IPv4Network('10.0.0.0/8')
    """
    if not header:
        if addresses or groups or leads:
            raise InputError("--proxy-address, --proxy-groups-header and --proxy-lead go with --proxy-user-header.")
        return None
    for name in (header, groups):
        if name and not NAME.fullmatch(name):
            raise InputError(f"{name!r} is not the name of a header; give one like Remote-User.")
    if not addresses:
        raise InputError("--proxy-user-header needs --proxy-address; the header is trusted only from there.")
    networks = []
    for address in addresses:
        try:
            networks.append(ipaddress.ip_network(address))
        except ValueError:
            raise InputError(
                f"--proxy-address is {address!r}; give an address such as 127.0.0.1, or a network such as 10.0.0.0/8."
            ) from None
    return ProxyLogin(header, tuple(networks), groups, frozenset(leads))
