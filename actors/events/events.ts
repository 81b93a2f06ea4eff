/**
 * The actor of a project's source events (the matcher): their order, their deduplication, and their
 * delivery to listeners. The decision to store an event is in publish.ts, the index of listeners in
 * listeners.ts.
 *
 * Invariants:
 * E1. Events are matched in the order in which they are stored. Each event is compared with the
 *     listeners that are registered at that time.
 * E2. No command is refused, and each may be repeated. Other actors are notified by effects, and
 *     therefore at least once. These actors detect repeats: a loop by trigger and event, a run by
 *     its wait, a webhook delivery by its own id.
 */

import type { Api } from '../../protocol/api.ts'
import type { Address, Kind } from '../../protocol/entry.ts'
import type { Named } from '../../protocol/events/rows.ts'
import {
  type ConditionFaults,
  type Firing,
  type Overrun,
  restrictionOf,
  type SourceCommands,
  type SourceEvent,
  type SourcesEvent,
  type TriggerLimits,
} from '../../protocol/events/sources.ts'
import type { Delivered } from '../../protocol/internal.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { Actor, Effect } from '../actor.ts'
import { charge } from './budget.ts'
import { openingOf } from './hooks.ts'
import { builtListeners } from './listeners.ts'
import { publish, publishMany, publishOne, publishRoots } from './publish.ts'
import { countFault, initialSources, publishedBy, remember, type SourcesState } from './state.ts'

const LOOP = 'loop' as string as Kind
type Stored = Extract<SourcesEvent, { type: 'source.published' }>

function tellAll(
  {
    id,
    event_type,
    source_kind,
    source_id,
    event,
    meta,
    record,
    depth,
    chain,
    private_session,
    private_owner,
    occurred_at,
    fires = {},
    overruns = {},
    wakes = {},
    hooks = {},
    faulty = {},
  }: Stored,
  { project }: Address,
): Effect[] {
  const source: SourceEvent = {
    id,
    event_type,
    source_kind,
    source_id,
    event,
    meta,
    depth,
    ...(chain && { chain }),
    ...restrictionOf({ private_session, private_owner }),
    occurred_at,
  }
  const delivered: Delivered = {
    source_event_id: id,
    event_type,
    source_kind,
    source_id,
    event,
    meta,
  }
  return [
    ...Object.entries(faulty).map(
      ([listener, fault]): Effect => ({
        warn: {
          about: listener,
          event: 'event_condition_failed',
          message: 'event condition evaluation failed',
          fields: { project, listener, source_event_id: id, event_type, fault },
        },
      }),
    ),
    ...Object.entries(wakes).map(
      ([run_id, wait_ids]): Effect => ({
        tell: {
          to: { kind: 'run', id: run_id },
          name: 'event.deliver',
          input: { ...delivered, wait_ids } satisfies Delivered,
        },
      }),
    ),
    ...Object.entries(fires).flatMap(([loop_id, ids]) =>
      ids.map(
        (trigger_id): Effect => ({
          tell: {
            to: { kind: LOOP, id: loop_id },
            name: 'trigger.fire',
            input: { trigger_id, source } satisfies Firing,
          },
        }),
      ),
    ),
    ...Object.entries(overruns).map(
      ([loop_id, overrun]): Effect => ({
        tell: {
          to: { kind: LOOP, id: loop_id },
          name: 'loop.stop',
          input: { ...overrun, source } satisfies Overrun,
        },
      }),
    ),
    ...Object.entries(hooks).map(
      ([webhook_id, whd]): Effect => ({
        tell: {
          to: { kind: 'delivery', id: whd },
          name: 'delivery.open',
          input: openingOf(project, webhook_id, whd, { ...source, ...(record && { record }) }),
        },
      }),
    ),
  ]
}

/** Creates the actor of a project's source events. */
export const eventsActor = (
  limits: TriggerLimits,
): Actor<
  SourcesState,
  SourcesEvent,
  Api,
  'events',
  SourceCommands,
  { 'event.publish': Named; 'event.publish_many': Named }
> => ({
  kind: 'events',
  initial: initialSources,
  decide: {
    'event.publish': (state, input, cause) => publishOne(state, input, cause, limits),
    'event.publish_many': (state, input, cause) => publishMany(state, input, cause, limits),
    'source.publish': (state, input, cause) => publish(state, input, cause, limits),
    'source.publish_all': (state, input, cause) => publishRoots(state, input, cause, limits),
    'triggers.set': ({ loops }, { loop_id, version, triggers }) => ({
      events:
        (getOwn(loops, loop_id)?.version ?? -1) >= version
          ? []
          : [{ type: 'triggers.changed', loop_id, version, triggers }],
      reply: undefined,
    }),
    'wait.watch': (_, { run_id, wait }) => ({
      events: [{ type: 'wait.watched', run_id, wait }],
      reply: undefined,
    }),
    'hook.set': ({ hooks }, { webhook_id, events }) => {
      const before = getOwn(hooks, webhook_id)
      const same = JSON.stringify(before) === JSON.stringify(events)
      return {
        events: same ? [] : [{ type: 'hook.changed', webhook_id, ...(events && { events }) }],
        reply: undefined,
      }
    },
    'wait.unwatch': ({ waits }, { wait_id }) => ({
      events: getOwn(waits, wait_id) ? [{ type: 'wait.unwatched', wait_id }] : [],
      reply: undefined,
    }),
  },
  evolve: {
    'source.published': (state, event, at) => {
      if (event.dedup_key !== undefined) remember(state, event.dedup_key, event.id, at)
      countFault(state, event)
      charge(state.budget, event, at)
      return state
    },
    'triggers.changed': (state, { loop_id, version, triggers }) => {
      const before = getOwn(state.loops, loop_id)?.triggers ?? []
      state.loops[loop_id] = { version, triggers }
      // The faults of a changed or removed trigger are dropped.
      for (const was of before)
        if (!triggers.some((one) => JSON.stringify(one) === JSON.stringify(was)))
          delete state.faults[was.trigger_id]
      builtListeners(state)?.removeLoop(loop_id, before)
      builtListeners(state)?.addLoop(loop_id, triggers)
      return state
    },
    'wait.watched': (state, { run_id, wait }) => {
      state.waits[wait.wait_id] = { run_id, wait }
      builtListeners(state)?.addWait(run_id, wait)
      return state
    },
    'hook.changed': (state, { webhook_id, events }) => {
      if (events) state.hooks[webhook_id] = events
      else delete state.hooks[webhook_id]
      return state
    },
    'wait.unwatched': (state, { wait_id }) => {
      delete state.waits[wait_id]
      builtListeners(state)?.removeWait(wait_id)
      return state
    },
  },
  react: {
    'source.published': tellAll,
    'wait.watched': ({ run_id, wait: { wait_id } }) => [
      { tell: { to: { kind: 'run', id: run_id }, name: 'event.watched', input: { wait_id } } },
    ],
  },
  // Snapshots of older releases lack newer fields, which get their initial values.
  recover: (state) => ({
    ...initialSources(),
    ...state,
    keys: { ...initialSources().keys, ...state.keys },
  }),
  ask: {
    /** The number of triggers, and the number of waits. */
    listening: ({ loops, waits }) => ({
      triggers: Object.values(loops).reduce((sum, { triggers }) => sum + triggers.length, 0),
      waits: Object.keys(waits).length,
    }),
    /**
     * The id of the event that was published under a deduplication key; null if the key is not
     * stored.
     */
    published: (state, { key }: { key: string }): string | null => publishedBy(state, key) ?? null,
    /** Faults of the conditions of a loop's triggers, by trigger. */
    faults: (
      { loops, faults },
      { loop_id }: { loop_id: string },
    ): Record<string, ConditionFaults> =>
      Object.fromEntries(
        (getOwn(loops, loop_id)?.triggers ?? []).flatMap(({ trigger_id }) => {
          const found = getOwn(faults, trigger_id)
          return found ? [[trigger_id, found]] : []
        }),
      ),
  },
})
