# SPDX-License-Identifier: Apache-2.0
"""Every replacement of a part of Heat, with its purpose and its gain.

Heat has no place for some of what a heat-engine with these types needs. So
this wraps functions of Heat's. No other module does. Each wrapper calls Heat's
own function, and expects certain parameters of it; where a Heat has another
function, or none, the wrapper is left out with one warning, and heat-engine
works as it does without it. ``heat-plugins-status`` shows what is in force.

The private parts of Heat's resources that our classes override stand here too.
"""

from collections import abc
import contextlib
import dataclasses
import functools
import importlib
import inspect
import sys
import threading
from typing import Any

from heat_plugins import foreign
from heat_plugins import registry
from heat_plugins.engine import heat_types
from heat_plugins.engine import histories
from heat_plugins.engine import metrics_scan
from heat_plugins.engine import process
from heat_plugins.engine import rescue
from heat_plugins.engine import run_room
from heat_plugins.engine import traversals
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import run_rows
from heat_plugins.engine.database import run_tables
from heat_plugins.engine.database import tenancy
from heat_plugins.engine.runs import door
from heat_plugins.engine.runs import leading
from heat_plugins.engine.runs import run_fleet
from heat_plugins.engine.runs import run_scans
from heat_plugins.engine.runs import schedule_keeping
from heat_plugins.engine.runs import triggering
from heat_plugins.signals import presigned

# A turn takes about 20 ms of CPU, and more on a busy engine. A thread that
# takes longer has met another process in a sync point, and pauses.
_TURN_SECONDS = 0.5

# Literals to remember; there is one for each resource of a stack.
_LITERALS = 16384

# Stacks of which no thread wants a turn now.
_IDLE_STACKS = 64

# By the ID of the stack.
_turns: process.Shared[str, process.Turns] = process.Shared(
    lambda stack_id: process.Turns(_TURN_SECONDS),
    lambda turns: not turns.present,
    _IDLE_STACKS,
)


def in_turn(propagate: abc.Callable[..., Any]) -> abc.Callable[..., Any]:
    """Return a wrapper by which our deployments propagate in turn.

    A resource that is complete is written into the row of each resource that
    needs it, and of its stack: the *sync points*. Each writer reads the row,
    adds itself, and starts over if another one was faster, after a random
    pause which grows with the number of those that are still missing, up to a
    minute. Servers that answer together so keep their stack waiting for the
    unluckiest of them. Those of one stack here take turns, so that none has to
    start over.
    """

    def propagate_in_turn(
        checker: Any,
        context: heat_types.Context,
        resource_id: int,
        traversal: str,
        is_update: bool,
        resource: Any,
        stack: heat_types.Stack,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        place: contextlib.AbstractContextManager[None] = (
            _turns.get(stack.id).turn()
            if resource.type() in registry.DEPLOYMENT_TYPES
            else contextlib.nullcontext()
        )
        with place:
            return propagate(
                checker,
                context,
                resource_id,
                traversal,
                is_update,
                resource,
                stack,
                *args,
                **kwargs,
            )

    return propagate_in_turn


def remembering(
    evaluate: abc.Callable[[str], tuple[Any, ...]],
) -> abc.Callable[[str], tuple[Any, ...]]:
    """Return a function that evaluates each literal once, one at a time.

    Reading the row of a sync point evaluates a literal for each resource that
    was complete before: a part of the work that grows with the square of their
    number. And where threads are native (Heat 25 and later), Python 3.11, and
    3.12 before 3.12.2, may fail at random when two of them parse at the same
    time (``SystemError: AST constructor recursion depth mismatch``, CPython's
    gh-106905), and the stack with it.
    """
    lock = threading.Lock()

    @functools.lru_cache(_LITERALS)
    def remembered(text: str) -> tuple[Any, ...]:
        with lock:
            return evaluate(text)

    return remembered


LOG = foreign.logger(__name__)

# What is on a wrapped function: the name of its patch.
_MARK = 'heat_plugins_patch'

_Function = abc.Callable[..., Any]


class Unfit(Exception):
    """This Heat lacks a part that a patch needs; the message names it."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Patch:
    """One function of Heat's that is wrapped.

    :ivar module: the module that has it.
    :ivar function: its name there, or ``Class.method``.
    :ivar parameters: how the names of its parameters begin.
    :ivar wrap: takes Heat's function and returns what replaces it.
    :ivar purpose: why, for operators.
    :ivar without: what an operator meets without it.
    :ivar gain: what was measured with and without it, with Heat 27; see the
        page on performance.
    :ivar since: the first release of Heat that needs it.
    :ivar serves_deployments: whether it serves the deployment types alone.
    """

    module: str
    function: str
    parameters: tuple[str, ...]
    wrap: abc.Callable[[_Function], _Function]
    purpose: str
    without: str
    gain: str
    since: int = 24
    serves_deployments: bool = True

    @property
    def name(self) -> str:
        return f'{self.module}.{self.function}'

    def install(self) -> None:
        """Replace Heat's function, once.

        :raises Unfit: this Heat has another function, or none.
        """
        owner, heats = self.probe()
        if hasattr(heats, _MARK):
            return
        wrapped = functools.wraps(heats)(self.wrap(heats))
        setattr(wrapped, _MARK, self.name)
        setattr(owner, self.function.rpartition('.')[2], wrapped)

    def probe(self) -> tuple[Any, _Function]:
        """Return where the function lies, and the function, if it fits.

        :raises Unfit: this Heat has another function, or none.
        """
        *path, name = self.function.split('.')
        try:
            owner = importlib.import_module(self.module)
            for each in path:
                owner = getattr(owner, each)
            # Not one that the owner inherits.
            function: _Function = vars(owner)[name]
        except (ImportError, AttributeError, KeyError) as exc:
            raise Unfit(f'this Heat has no {self.name}') from exc
        # Also those of a function that was wrapped before.
        names = tuple(inspect.signature(function).parameters)
        if names[: len(self.parameters)] != self.parameters:
            raise Unfit(
                f'{self.name} of this Heat has the parameters '
                f'({", ".join(names)})'
            )
        return owner, function


def _forget_ended(add_thread: _Function) -> _Function:
    """Let a stack's list of threads lose those that have ended.

    Heat 25 and later override what oslo.service does about that. At 1000 the
    list of a stack is full, after some hundred actions or signals, and all
    that the stack does fails until heat-engine restarts. Each thread keeps
    the context of a request with its clients, also of a stack that is deleted.
    """

    def add(group: Any, func: _Function, *args: Any, **kwargs: Any) -> Any:
        thread = add_thread(group, func, *args, **kwargs)
        thread.link(group.thread_done)
        return thread

    return add


def note_signature(resource_signal: _Function) -> _Function:
    """Let a resource know the signature of the URL that a signal came by.

    Heat's API hands it to the engine, which would lose it. What answers a run
    comes to no resource; see `triggering`.
    """

    def signal(
        service: Any,
        cnxt: Any,
        stack_identity: Any,
        resource_name: str,
        details: object,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        if resource_name == run_fleet.RESOURCE:
            return triggering.answer(service, cnxt, stack_identity, details)
        signature = presigned.checked(cnxt.aws_creds)
        # It tells by itself for which member of a group a signal is.
        if signature is not None and histories.take_of_member(
            stack_identity['stack_id'], resource_name, signature, details
        ):
            return None
        details = presigned.noted(details, cnxt.aws_creds)
        return resource_signal(
            service,
            cnxt,
            stack_identity,
            resource_name,
            details,
            *args,
            **kwargs,
        )

    return signal


def _let_replaced_read(authorize: _Function) -> _Function:
    """Let a server that is replaced read its own metadata until it is gone.

    It asks by the name of its resource, which is that of the new server, too.
    Heat compares its user with the new one's alone.
    """

    def authorize_its_user(
        service: Any, cnxt: Any, stack: Any, resource_name: str
    ) -> Any:
        return authorize(
            service, cnxt, stack, resource_name
        ) or resources.show_replaced(stack, resource_name, cnxt.user_id)

    return authorize_its_user


_FOREIGN = (
    'a user of another project who knows the ID of a server can have a script '
    'of his run on it, as root'
)

#: In the order in which they are installed.
PATCHES = (
    Patch(
        module='heat.db.api',
        function='software_deployment_get_all',
        parameters=('context', 'server_id'),
        wrap=tenancy.own_deployments,
        purpose='a server gets, and a project lists, the deployments of the '
        'project alone',
        without=_FOREIGN,
        gain='the only way; Heat takes any stack_user_project_id for proof',
        serves_deployments=False,
    ),
    Patch(
        module='heat.db.api',
        function='_software_deployment_get',
        parameters=('context', 'deployment_id'),
        wrap=tenancy.own_deployment,
        purpose='a project reads and changes its own deployments alone',
        without='a project can be shown deployments of another project',
        gain='the only way, as above',
        serves_deployments=False,
    ),
    Patch(
        module='heat.db.api',
        function='software_deployment_count_all',
        parameters=('context',),
        wrap=tenancy.own_count,
        purpose="a project's own deployments alone count against its limit",
        without='a user of another project can use up the limit of '
        'deployments of a project',
        gain='the only way, as above',
        serves_deployments=False,
    ),
    Patch(
        module='heat.engine.service_software_config',
        function='SoftwareConfigService._push_metadata_software_deployments',
        parameters=('self', 'cnxt', 'server_id', 'stack_user_project_id'),
        wrap=tenancy.as_server_project,
        purpose='what an administrator does gives a server the deployments of '
        'its own project alone',
        without=_FOREIGN,
        gain='the only way; Heat filters nothing for an administrator',
        serves_deployments=False,
    ),
    Patch(
        module='heat.engine.service_software_config',
        function='SoftwareConfigService.metadata_software_deployments',
        parameters=('self', 'cnxt', 'server_id'),
        wrap=tenancy.as_server_project,
        purpose='an administrator who asks what a server gets sees what it '
        'gets',
        without='an administrator sees deployments of other projects there',
        gain='the only way, as above',
        serves_deployments=False,
    ),
    Patch(
        module='heat.engine.service',
        function='EngineService.create_software_deployment',
        parameters=(
            'self',
            'cnxt',
            'server_id',
            'config_id',
            'input_values',
            'action',
            'status',
            'status_reason',
            'stack_user_project_id',
        ),
        wrap=door.ordered,
        purpose='a deployment names no other project in '
        'stack_user_project_id, and heat-engine takes orders of runs',
        without='runs cannot be ordered of heat-engine; and deployments may '
        'name other projects, which counts for nothing with the patches above',
        gain='the only way; Heat checks the length of the ID alone, and has '
        'no other place for orders in its API',
        serves_deployments=False,
    ),
    Patch(
        module='heat.engine.service',
        function='EngineService.list_software_deployments',
        parameters=('self', 'cnxt', 'server_id'),
        wrap=door.listed,
        purpose='heat-engine shows runs',
        without='heat-engine takes orders of runs and shows none',
        gain='the only way, as above',
        serves_deployments=False,
    ),
    Patch(
        module='heat.engine.service',
        function='EngineService.start',
        parameters=('self',),
        wrap=process.with_scans(
            rescue.SCAN,
            traversals.SCAN,
            schedule_keeping.SCAN,
            metrics_scan.SCAN,
            run_tables.SCAN,
            run_scans.SCAN,
            run_scans.RETENTION,
            run_scans.NOTICES,
            before=rescue.report_often,
            after=leading.begin,
        ),
        purpose='heat-engine scans for deployments of dead engines, for '
        'stacks that stand still, and for schedules; it makes the '
        'tables of runs, and leads runs',
        without='heat-engine resumes neither deployments of dead engines nor '
        'stacks that stand still, keeps no schedules, and starts no runs',
        gain='the only way to do so; nothing else tells a plugin that an '
        'engine starts',
    ),
    Patch(
        module='heat.engine.check_resource',
        function='CheckResource._initiate_propagate_resource',
        parameters=(
            'self',
            'cnxt',
            'resource_id',
            'current_traversal',
            'is_update',
            'rsrc',
            'stack',
        ),
        wrap=in_turn,
        purpose='deployments of a stack that complete together take turns',
        without='deployments that complete together delay their stack',
        gain='200 resources that complete together: 2.3 s instead of 19 s, '
        'with a quarter of the CPU time',
    ),
    Patch(
        module='heat.engine.sync_point',
        function='_str_unpack_tuple',
        parameters=('s',),
        wrap=remembering,
        purpose='keys of sync points are parsed once, in one thread',
        without='completing costs more, and on Python 3.11, and 3.12 before '
        '3.12.2, stacks may fail with "AST constructor recursion depth '
        'mismatch"',
        gain='1000 resources of a stack: 0.25 s of CPU time for their keys '
        'instead of 3.0 s',
    ),
    Patch(
        module='heat.engine.service',
        function='ThreadGroup.add_thread',
        parameters=('self', 'func'),
        wrap=_forget_ended,
        purpose='the threads of a stack that have ended are forgotten',
        without='a stack fails with "Maximum number of threads reached" '
        'after some hundred actions or signals',
        gain='any number of actions instead of about 1000 threads; 1.0 '
        'instead of 8.4 MB more memory for each stack that comes and goes',
        since=25,
        serves_deployments=False,
    ),
    Patch(
        module='heat.engine.service',
        function='EngineService.resource_signal',
        parameters=(
            'self',
            'cnxt',
            'stack_identity',
            'resource_name',
            'details',
        ),
        wrap=note_signature,
        purpose='a signal shows by which URL of CFN_SIGNAL it came, and '
        'answers runs and groups by that',
        without='without an object store, runs and groups get no results; and '
        'with CFN_SIGNAL a server that was rebuilt may complete an update '
        'with the result of the action before',
        gain='the only way to tell; heat-agents send a result without a word '
        'of what it answers',
    ),
    Patch(
        module='heat.engine.service',
        function='EngineService._authorize_stack_user',
        parameters=('self', 'cnxt', 'stack', 'resource_name'),
        wrap=_let_replaced_read,
        purpose='a server that is replaced reads its metadata until it is '
        'deleted',
        without='with POLL_SERVER_CFN and POLL_SERVER_HEAT, an update that '
        'replaces a server with a DELETE deployment waits until its time '
        'limit',
        gain='the only way; Heat answers the old server with AccessDenied '
        'once the new one exists',
    ),
)


#: Methods of Heat's resources around which ours note the loop of an action,
#: and a release that has each; see `resources.software.server_bound`.
LOOPS = {
    'create_convergence': 24,
    'update_convergence': 24,
    'delete_convergence': 24,
    'suspend_convergence': 26,
    'resume_convergence': 26,
}

#: What each of them takes.
LOOP_PARAMETERS = frozenset({'timeout', 'progress_callback'})

#: Private methods and properties of Heat's resources that ours override. If
#: one goes, ours is called no longer; a test compares the list with each Heat.
OVERRIDDEN = frozenset(
    {
        '_TASKS_KEYS',
        '_action_recorder',
        '_add_event',
        '_assemble_for_rolling_update',
        '_assemble_nested',
        '_delete_swift_signal_url',
        '_handle_action',
        '_handle_cancel',
        '_name_skiplist',
        '_needs_update',
        '_resolve_any_attribute',
        '_resolve_attribute',
        '_show_resource',
        '_stack_kwargs',
    }
)


def install(types: abc.Set[str]) -> None:
    """Install the patches of a heat-engine that serves some of our types.

    What cannot be installed is left out with a warning: heat-engine starts
    in any case. Other programs that load plugins need none of it.
    """
    if 'heat.engine.service' not in sys.modules:
        return
    run_room.install(triggering)
    door.install(
        door.Door(
            run_rows.RunRows(), leading.wake, progress=run_fleet.progress
        )
    )
    for patch in needed(types):
        try:
            patch.install()
        except Unfit as exc:
            LOG.warning(
                'Not replacing %(name)s, so %(without)s: %(reason)s',
                {'name': patch.name, 'without': patch.without, 'reason': exc},
            )


def needed(types: abc.Set[str]) -> list[Patch]:
    """Return the patches of this Heat if it serves some of our types."""
    serves_deployments = types >= registry.DEPLOYMENT_TYPES
    return [
        each
        for each in PATCHES
        if each.since <= registry.release()
        and (serves_deployments or not each.serves_deployments)
    ]


def is_fit(name: str) -> bool:
    """Say whether a patch, which there must be, fits this Heat."""
    (patch,) = (each for each in PATCHES if each.name == name)
    try:
        patch.probe()
    except Unfit:
        return False
    return True
