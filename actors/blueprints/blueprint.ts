/**
 * The blueprint actor: it serializes the changes to one blueprint. The blueprint is identified by
 * project, namespace and key, from which the actor's id is derived. The gateway that holds the
 * blueprint plans the change and sends the commands to the owners of the resources.
 *
 * Invariants:
 * B1. A blueprint has at most one holder at a time. A hold that is not renewed ends after
 *     `HOLD_MS`.
 * B2. Ids of resources are reserved before the resources are created. An interrupted apply is
 *     repeated under the same ids, so it cannot create a resource twice.
 * B3. Bindings are not stored here but with their resources (protocol/blueprints/stored.ts).
 */
import type { Api } from '../../protocol/api.ts'
import {
  type BlueprintCommands,
  type BlueprintEvent,
  type BlueprintInputs,
  type Counts,
  HOLD_MS,
} from '../../protocol/blueprints/events.ts'
import { identityOf } from '../../protocol/blueprints/stored.ts'
import { type Refusal, refuse } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { Actor } from '../actor.ts'

interface BlueprintState {
  holder?: string
  /** Unix milliseconds at which the hold ends. */
  until?: number
  /** Reserved ids by `type/key`. */
  reserved: Readonly<Record<string, string>>
}

/** Refuses a command from a caller that no longer holds the blueprint. */
const lost = (state: BlueprintState, holder: string): Refusal | undefined =>
  state.holder === holder ? undefined : refuse('blueprint_busy', { retry_after: 1 })

function countsOf<T>(items: readonly T[], by: (item: T) => string): Counts {
  const counts: Record<string, number> = {}
  for (const item of items) counts[by(item)] = (counts[by(item)] ?? 0) + 1
  return counts
}
const freed = ({ reserved }: BlueprintState): BlueprintState => ({ reserved })
const without = (
  reserved: Readonly<Record<string, string>>,
  used: readonly string[],
): Readonly<Record<string, string>> => {
  const gone = new Set(used)
  return Object.fromEntries(Object.entries(reserved).filter(([place]) => !gone.has(place)))
}

/** The actor of a blueprint. */
export const blueprintActor: Actor<
  BlueprintState,
  BlueprintEvent,
  Api,
  'blueprint',
  BlueprintCommands,
  BlueprintInputs
> = {
  kind: 'blueprint',
  initial: () => ({ reserved: {} }),
  decide: {
    'blueprint.hold': (state, { holder, ...identity }, { at }) =>
      state.holder !== undefined && state.holder !== holder && (state.until ?? 0) > at
        ? refuse('blueprint_busy', { retry_after: 1 })
        : {
            events: [
              { type: 'blueprint.held', holder, until: at + HOLD_MS, ...identityOf(identity) },
            ],
            reply: { holder },
          },
    'blueprint.reserve': (state, { holder, ids, replace }) => {
      const refused = lost(state, holder)
      if (refused) return refused
      const kept = without(state.reserved, replace)
      const counted = Object.fromEntries(
        Object.entries(ids).map(([place, id]) => [place, getOwn(kept, place) ?? id]),
      )
      return {
        events: [{ type: 'blueprint.reserved', ids: { ...kept, ...counted } }],
        reply: { ids: counted },
      }
    },
    'blueprint.key': () => ({ events: [{ type: 'blueprint.keyed' }], reply: undefined }),
    'blueprint.release': (state, { holder }) => ({
      events: state.holder === holder ? [{ type: 'blueprint.released' }] : [],
      reply: undefined,
    }),
    'blueprint.apply': (state, { holder, result }) =>
      lost(state, holder) ?? {
        events: [
          {
            type: 'blueprint.applied',
            ...identityOf(result),
            ...(result.blueprint_version !== undefined && {
              blueprint_version: result.blueprint_version,
            }),
            counts: countsOf(result.changes, ({ action }) => action),
            used: result.changes.map(({ resource_type, key }) => `${resource_type}/${key}`),
          },
        ],
        reply: result,
      },
    'blueprint.protect': (state, { holder, items, protected: on, ...identity }) =>
      lost(state, holder) ?? {
        events: [{ type: 'blueprint.protection_set', protected: on, ...identityOf(identity) }],
        reply: { items: [...items] },
      },
    'blueprint.delete': (state, { holder, result }) =>
      lost(state, holder) ?? {
        events: [
          {
            type: 'blueprint.deleted',
            ...identityOf(result),
            counts: { deleted: result.deleted.length, retained: result.retained.length },
          },
        ],
        reply: result,
      },
  },
  evolve: {
    'blueprint.held': ({ reserved }, { holder, until }) => ({ reserved, holder, until }),
    'blueprint.reserved': (state, { ids }) => ({ ...state, reserved: ids }),
    'blueprint.released': freed,
    'blueprint.keyed': (state) => state,
    'blueprint.applied': ({ reserved }, { used }) => ({ reserved: without(reserved, used) }),
    'blueprint.protection_set': freed,
    'blueprint.deleted': () => ({ reserved: {} }),
  },
}
