/**
 * The loop actor: the single writer of a definition with its versions and triggers, and of the
 * order in which runs start. Its runs are in the same shard, so a start and the new run are
 * committed together. The end of a run and the start of the next waiting run are also one commit.
 * This file contains the actor's tables. The decisions are in the other files of this folder. A
 * loop can be deleted in any status.
 *
 *     draft ⇄ active ⇄ paused → deleted
 */

import type { Api } from '../../protocol/api.ts'
import type { BindingCommands, BoundEvent } from '../../protocol/blueprints/stored.ts'
import { timestamp } from '../../protocol/common.ts'
import type { Address } from '../../protocol/entry.ts'
import type { ServicePublication, SourceCommands, Watch } from '../../protocol/events/sources.ts'
import { isPublishable } from '../../protocol/events/types.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { LoopCommands, LoopEvent, Saving } from '../../protocol/loops/events.ts'
import { handleId } from '../../protocol/loops/handles.ts'
import type { TriggerFacts, TriggerStanding } from '../../protocol/loops/rows.ts'
import type { SlotCommands } from '../../protocol/loops/slots.ts'
import type { LoopStanding } from '../../protocol/loops/standing.ts'
import { type Actor, type AnyActor, type Cause, defineActor, type Effect } from '../actor.ts'
import { managed, singleResource } from '../blueprints/managed.ts'
import { spentBudget } from './budget.ts'
import { fireAsTest, start } from './client-start.ts'
import { create, end, remove, settleHandle, update } from './define.ts'
import type { LoopOptions } from './draft.ts'
import { errandOf, firingSettled } from './firings.ts'
import { left, returns, spend, wake } from './runs.ts'
import { slotGranted } from './slots.ts'
import { standingOf } from './standing.ts'
import { answerStep, fire, stop } from './start.ts'
import {
  deadline,
  evolveLoop,
  initialLoop,
  isExisting,
  type LoopState,
  triggersOf,
} from './state.ts'

type Extra = {
  'loop.create': Saving
  'loop.update': Saving
  'loop.delete': Pick<Saving, 'organization'>
  'loop.start': { readonly run_id: string }
}
const toHandle = (handle: string, organization: string, name: string, input: unknown): Effect => ({
  tell: {
    to: { kind: 'trigger_handle', id: handleId(handle), project: organization },
    name,
    input,
  },
})

const toPlan = <N extends 'place.ask' | 'place.return'>(
  organization: string,
  name: N,
  input: SlotCommands[N]['input'],
): Effect => ({
  tell: { to: { kind: 'plan', id: organization, project: organization }, name, input },
})

/**
 * Publishes the source event `loop.auto_paused`. Its source is the run that caused the pause, by
 * its failure or by an event.
 */
function sayPaused(
  {
    id: loop_id,
    run_id,
    consecutive_failures,
    threshold,
    reason,
    depth = 1,
    chain,
    record,
  }: Extract<LoopEvent, { type: 'loop.auto_paused' }>,
  { project }: Address,
): Effect[] {
  const said: ServicePublication = {
    event_type: 'loop.auto_paused',
    source_kind: 'loop_run',
    source_id: run_id,
    event: {
      run_id,
      loop_id,
      ...(consecutive_failures !== undefined && { consecutive_failures }),
      ...(threshold !== undefined && { threshold }),
      ...(reason !== undefined && { reason }),
    },
    meta: { run_id, loop_id },
    ...(record && { record }),
    depth,
    ...(chain && { chain }),
  }
  return [{ tell: { to: { kind: 'events', id: project }, name: 'source.publish', input: said } }]
}

/**
 * Logs a warning about triggers for event types that nothing publishes. Such triggers are saved but
 * do not fire.
 */
function warnOfIdleTriggers(
  loop_id: string,
  triggers: readonly Watch[],
  project: string,
): readonly Effect[] {
  const idle = triggers.filter(({ event_type }) => !isPublishable(event_type))
  if (idle.length === 0) return []
  const fields = {
    project,
    loop_id,
    trigger_ids: idle.map(({ trigger_id }) => trigger_id).join(', '),
    event_types: [...new Set(idle.map(({ event_type }) => event_type))].join(', '),
  }
  return [
    {
      warn: {
        about: loop_id,
        event: 'trigger_event_unpublished',
        message: 'loop triggers watch event types that nothing publishes',
        fields,
      },
    },
  ]
}

function factsOf(state: LoopState, { trigger_id }: { trigger_id: string }): TriggerFacts | null {
  const known = isExisting(state)
    ? triggersOf(state.record, state.trigger_ids).find(({ id }) => id === trigger_id)
    : undefined
  if (known?.trigger.kind !== 'http' || !state.record) return null
  const secret = state.secrets[known.key]
  return {
    status: state.record.status,
    enabled: known.trigger.enabled !== false,
    key: known.key,
    ...(secret !== undefined && { secret }),
  }
}

function standingsOf(state: LoopState): TriggerStanding[] | null {
  if (!isExisting(state)) return null
  return triggersOf(state.record, state.trigger_ids).map(
    ({ id, trigger: { key, name, kind, enabled = true } }) => {
      const next = state.clocks[id]?.next
      const skips = getOwn(state.skips ?? {}, id)
      return {
        id,
        kind,
        enabled,
        ...(key !== undefined && { key }),
        ...(name !== undefined && { name }),
        ...(next !== undefined && { next_fire_at: timestamp(next) }),
        ...(skips && { skipped_starts: skips.count, last_skipped_start: { ...skips.last } }),
      }
    },
  )
}

const resource = singleResource<LoopState>('loop', (state) =>
  isExisting(state) ? state.record : undefined,
)

/** Creates the loop actor. */
export function loopActor(options: LoopOptions): AnyActor {
  const bound =
    <I, D>(decide: (options: LoopOptions, state: LoopState, input: I, cause: Cause) => D) =>
    (state: LoopState, input: I, cause: Cause): D =>
      decide(options, state, input, cause)
  const actor: Actor<
    LoopState,
    LoopEvent | BoundEvent,
    Api,
    'loop',
    LoopCommands & BindingCommands,
    Extra
  > = {
    kind: 'loop',
    initial: initialLoop,
    decide: {
      'loop.create': managed(resource.managed, 'create', bound(create)),
      'loop.update': managed(resource.managed, 'change', bound(update)),
      'loop.delete': managed(resource.managed, 'delete', bound(remove)),
      ...resource.arms,
      'loop.start': bound(start) as never,
      'loop.fire': bound(fireAsTest) as never,
      'trigger.fire': bound(fire),
      'job.settled': firingSettled,
      'loop.stop': bound(stop),
      'loop.ask': bound(answerStep),
      'run.left': bound(left),
      'run.returns': bound(returns),
      'run.spent': bound(spend),
      'handle.settle': settleHandle,
      'loop.end': bound(end),
      'place.give': bound(slotGranted),
      wake: bound(wake),
    },
    records: { 'loop.update': ({ record }) => record },
    evolve: {
      ...evolveLoop,
      ...resource.evolve,
    },
    react: {
      'triggers.watched': ({ loop_id, version, triggers }, { project }) => [
        {
          tell: {
            to: { kind: 'events', id: project },
            name: 'triggers.set',
            input: { loop_id, version, triggers } satisfies SourceCommands['triggers.set']['input'],
          },
        },
        ...warnOfIdleTriggers(loop_id, triggers, project),
      ],
      'loop.auto_paused': sayPaused,
      'firing.dropped': ({ trigger_id, source_event_id }, { id: loop_id, project }) => [
        {
          warn: {
            about: loop_id,
            event: 'trigger_firing_dropped',
            message: 'trigger firing of a private session dropped; too many are waiting',
            fields: { project, loop_id, trigger_id, source_event_id },
          },
        },
      ],
      'place.wanted': ({ run_id, loop_id, organization }, { project }) => [
        toPlan(organization, 'place.ask', { project, loop_id, run_id }),
      ],
      'place.returned': ({ run_id, organization }) => [
        toPlan(organization, 'place.return', { run_id }),
      ],
      'place.declined': ({ run_id, organization }) => [
        toPlan(organization, 'place.return', { run_id }),
      ],
      'loop.stands': ({ loop_id, version, actions, gone }, { project }) => [
        {
          tell: {
            to: { kind: 'project', id: project },
            name: 'loop.note',
            input: { loop_id, version, actions, ...(gone && { gone }) } satisfies LoopStanding,
          },
        },
      ],
      'handle.bound': ({ handle, loop_id, trigger_id, organization }, { project }) => [
        toHandle(handle, organization, 'handle.bind', { handle, loop_id, trigger_id, project }),
      ],
      'handle.freed': ({ handle, loop_id, trigger_id, organization }) => [
        toHandle(handle, organization, 'handle.free', {
          loop_id,
          ...(trigger_id !== '' && { trigger_id }),
        }),
      ],
      'child.answered': ({ to, type: _, ...input }) => [
        { tell: { to: { kind: 'run', id: to }, name: 'child.answered', input } },
      ],
    },
    ask: {
      version: (state, _, at) => {
        if (!isExisting(state)) return null
        const spent_budget = spentBudget(state, at)
        return { ...state.version, ...(spent_budget && { spent_budget }) }
      },
      trigger: factsOf,
      triggers: standingsOf,
      standing: standingOf,
      job_spec: errandOf,
      resource: (state) => resource.asked(state),
    },
    // Snapshots of older releases lack newer fields, which get their initial values.
    recover: (state) => ({ ...initialLoop(), ...state }),
    deadline,
    ended: ({ deleted, line, active }) =>
      deleted === true && line.length === 0 && Object.keys(active).length === 0,
  }
  return defineActor(actor)
}
