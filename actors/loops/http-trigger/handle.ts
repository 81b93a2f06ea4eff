/**
 * The actor of an HTTP trigger's handle. It stores which loop owns the handle. Handles are unique
 * in the whole installation. The handle is reserved for a loop before the loop is saved. After the
 * commit that saves the loop, an effect binds the handle.
 *
 * Invariants:
 * H1. A handle belongs to one loop at a time.
 * H2. A reservation ends when the only request that may use it has been refused. Any other
 *     reservation that its loop does not use ends automatically. The loop may use it for one
 *     minute. After two minutes, and then every five minutes until the loop answers, this actor
 *     asks the loop whether it uses the handle.
 */

import type { Api } from '../../../protocol/api.ts'
import {
  type HandleCommands,
  type HandleEvent,
  type HandleOwner,
  refuseTakenHandle,
} from '../../../protocol/loops/handles.ts'
import { type Actor, defineActor } from '../../actor.ts'

/** Milliseconds for which a loop may use a reservation (H2). */
const RESERVATION_MS = 60_000
/** Milliseconds from a reservation until the loop is first asked whether it uses the handle. */
const FIRST_QUERY_MS = 120_000
/** Milliseconds after which an unanswered query to the loop is repeated. */
const QUERY_EVERY_MS = 300_000

interface HandleState {
  readonly handle?: string
  readonly owner?: HandleOwner
  readonly reserved?: {
    readonly project: string
    readonly loop_id: string
    readonly until: number
    /** The only request that may use the reservation; absent: several requests may use it. */
    readonly reservation?: string
  }
}

const actor: Actor<HandleState, HandleEvent, Api, 'trigger_handle', HandleCommands> = {
  kind: 'trigger_handle',
  initial: () => ({}),
  decide: {
    'handle.reserve': (state, { handle, project, loop_id, reservation }, { at }) => {
      const holder = state.owner?.loop_id ?? state.reserved?.loop_id
      if (
        state.handle !== undefined &&
        (state.handle !== handle || (holder !== undefined && holder !== loop_id))
      )
        return refuseTakenHandle(handle)
      const until = at + FIRST_QUERY_MS
      return {
        events: state.owner
          ? []
          : [
              {
                type: 'handle.reserved',
                handle,
                project,
                loop_id,
                until,
                ...(reservation !== undefined && !state.reserved && { reservation }),
              },
            ],
        reply: { until: at + RESERVATION_MS },
      }
    },
    'handle.bind': (state, { handle, project, loop_id, trigger_id }) => {
      const holder = state.owner?.loop_id ?? state.reserved?.loop_id
      const foreign =
        (holder !== undefined && holder !== loop_id) ||
        (state.handle !== undefined && state.handle !== handle)
      return {
        events:
          foreign || state.owner?.trigger_id === trigger_id
            ? []
            : [{ type: 'handle.taken', handle, project, loop_id, trigger_id }],
        reply: undefined,
      }
    },
    'handle.free': ({ owner, reserved }, { loop_id, trigger_id, reservation }) => {
      const owned = owner
        ? reservation === undefined &&
          owner.loop_id === loop_id &&
          (trigger_id === undefined || owner.trigger_id === trigger_id)
        : reserved?.loop_id === loop_id &&
          (reservation === undefined || reserved.reservation === reservation)
      return { events: owned ? [{ type: 'handle.released' }] : [], reply: undefined }
    },
    wake: ({ handle, reserved }, _, { at, self }) => ({
      events:
        handle !== undefined && reserved && reserved.until <= at
          ? [
              {
                type: 'handle.questioned',
                handle,
                project: reserved.project,
                loop_id: reserved.loop_id,
                organization: self.project,
                until: at + QUERY_EVERY_MS,
              },
            ]
          : [],
      reply: undefined,
    }),
  },
  evolve: {
    'handle.reserved': (_, { handle, project, loop_id, until, reservation }) => ({
      handle,
      reserved: {
        project,
        loop_id,
        until,
        ...(reservation !== undefined && { reservation }),
      },
    }),
    'handle.taken': (_, { handle, project, loop_id, trigger_id }) => ({
      handle,
      owner: { project, loop_id, trigger_id },
    }),
    'handle.questioned': (state, { until }) =>
      state.reserved ? { ...state, reserved: { ...state.reserved, until } } : state,
    'handle.released': () => ({}),
  },
  react: {
    'handle.questioned': ({ handle, project, loop_id, organization }) => [
      {
        tell: {
          to: { kind: 'loop', id: loop_id, project },
          name: 'handle.settle',
          input: { handle, organization },
        },
      },
    ],
  },
  ask: {
    /** The owner of the handle; null if the handle is not owned. */
    owner: ({ handle, owner }, { handle: asked }: { handle: string }) =>
      owner && handle === asked ? owner : null,
  },
  deadline: ({ reserved }) => reserved?.until,
}

/** The actor of a handle. Its project is the organization. */
export const triggerHandle = defineActor(actor)
