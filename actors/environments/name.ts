/**
 * The actor that holds one environment name in a project (the holder). Its id is derived from the
 * name. All environments with this name are in the same shard as the holder. The commit that
 * creates an environment therefore also takes the name. The commit that destroys an environment, or
 * changes its scope or owner, also releases the name.
 *
 * Invariant: at most one environment that is not destroyed has the name for each `scopeKey`, which
 * identifies the project or one owner.
 */
import type { BlueprintClaim } from '../../protocol/blueprints/stored.ts'
import {
  type EnvironmentFacts,
  type EnvironmentNameCommands,
  scopeKey,
} from '../../protocol/environments/commands.ts'
import type { EnvironmentNameEvent } from '../../protocol/environments/events.ts'
import type { environments } from '../../protocol/environments/rows.ts'
import type { AttachEnvironment, Environment } from '../../protocol/environments/schema.ts'
import { refuse } from '../../protocol/errors.ts'
import { getOwn } from '../../protocol/lookup.ts'
import type { Actor, Cause, Decision, Tell } from '../actor.ts'
import { newEnvironment } from './creation.ts'

interface Held {
  readonly environment_id: string
  readonly provider: string
  /** The request that reserved the key. Absent when the environment uses the key. */
  readonly reservation?: string
}
interface NameState {
  /** The environments with the name, by `scopeKey`. */
  readonly held: Readonly<Record<string, Held>>
}
type Rows = Pick<
  typeof environments,
  'environment.create' | 'environment.attach' | 'environment.acquire_matching'
>
/**
 * Data that the gateway adds to `environment.attach`: the data that it also adds to a creation, and
 * the worker.
 */
interface Attachment extends EnvironmentFacts {
  readonly worker: { readonly session: string; readonly instance: string }
}
interface Extra {
  readonly 'environment.create': EnvironmentFacts & BlueprintClaim
  readonly 'environment.attach': Attachment
  readonly 'environment.acquire_matching': EnvironmentFacts
}
/**
 * The reply to a creation. `status_code` is 200 if the environment already existed. The gateway
 * then reads the rest of its record.
 */
type Created = Environment & { readonly status_code?: number }

function create(
  { creation, fault, blueprint }: EnvironmentFacts & BlueprintClaim,
  cause: Cause,
): {
  readonly environment: Environment
  readonly decided: Decision<EnvironmentNameEvent, Created>
} {
  const id = cause.mint('environment')
  const environment = newEnvironment(id, creation, cause.at)
  const tell: Tell = {
    to: { kind: 'environment', id },
    name: 'environment.open',
    input: { environment, origin: { holder: cause.self.id }, ...(blueprint && { blueprint }) },
  }
  return {
    environment,
    decided: fault ?? {
      events: [
        {
          type: 'environment_name.taken',
          key: scopeKey(environment),
          environment_id: id,
          provider: environment.provider,
        },
      ],
      tells: [tell],
      reply: environment,
    },
  }
}
const heldBy = ({ held }: NameState, creation: Pick<Environment, 'scope' | 'owned_by'>) =>
  getOwn(held, scopeKey(creation))
const existing = (id: string): Created => ({ id, status_code: 200 }) as Created

function attach(
  state: NameState,
  input: AttachEnvironment & Attachment,
  cause: Cause,
): Decision<EnvironmentNameEvent, Created> {
  const { creation, worker } = input
  const before = heldBy(state, creation)
  if (before && before.provider !== 'worker')
    return refuse(
      'conflict',
      { environment_id: before.environment_id },
      'The name belongs to an environment that no worker attached.',
    )
  const again = (id: string): Tell => ({
    to: { kind: 'environment', id },
    name: 'environment.reattach',
    input: { ...worker, ...(before && creation.tags && { tags: creation.tags }) },
  })
  if (before)
    return {
      events: [],
      tells: [again(before.environment_id)],
      reply: existing(before.environment_id),
    }
  const { environment, decided } = create(input, cause)
  return 'refused' in decided
    ? decided
    : { ...decided, tells: [...(decided.tells ?? []), again(environment.id)] }
}

/** The actor that holds an environment name. */
export const environmentName: Actor<
  NameState,
  EnvironmentNameEvent,
  Rows,
  'environment_name',
  EnvironmentNameCommands,
  Extra
> = {
  kind: 'environment_name',
  initial: () => ({ held: {} }),
  decide: {
    'environment.create': (state, input, cause) =>
      heldBy(state, input.creation)
        ? refuse('already_exists', { field: 'name', name: input.creation.name })
        : create(input, cause).decided,
    'environment.attach': attach,
    // Finds or creates the environment with the name. The gateway then acquires its lease.
    'environment.acquire_matching': (state, input, cause) => {
      const before = heldBy(state, input.creation)
      return before
        ? { events: [], reply: existing(before.environment_id) }
        : create(input, cause).decided
    },
    'environment_name.key': () => ({
      events: [{ type: 'environment_name.keyed' }],
      reply: undefined,
    }),
    'environment_name.take': ({ held }, { name, key, environment_id, reservation }) => {
      const before = getOwn(held, key)
      if (before && before.environment_id !== environment_id)
        return refuse('already_exists', { field: 'name', name })
      const own = Object.values(held).find((one) => one.environment_id === environment_id)
      return {
        events:
          !own || (before && before.reservation === undefined)
            ? []
            : [
                {
                  type: 'environment_name.taken',
                  key,
                  environment_id,
                  provider: own.provider,
                  ...(reservation !== undefined && { reservation }),
                },
              ],
        reply: undefined,
      }
    },
    'environment_name.release': ({ held }, { key, environment_id, reservation }) => {
      const before = getOwn(held, key)
      const mine = before?.environment_id === environment_id && before.reservation === reservation
      return {
        events: mine ? [{ type: 'environment_name.freed', environment_id, keys: [key] }] : [],
        reply: undefined,
      }
    },
    'environment_name.keep': ({ held }, { environment_id, key }) => {
      const keys = Object.keys(held).filter(
        (other) => held[other]?.environment_id === environment_id && other !== key,
      )
      return {
        events: keys.length > 0 ? [{ type: 'environment_name.freed', environment_id, keys }] : [],
        reply: undefined,
      }
    },
  },
  evolve: {
    'environment_name.keyed': (state) => state,
    'environment_name.taken': ({ held }, { key, environment_id, provider, reservation }) => ({
      held: {
        ...held,
        [key]: { environment_id, provider, ...(reservation !== undefined && { reservation }) },
      },
    }),
    'environment_name.freed': ({ held }, { environment_id, keys }) => {
      const left = Object.entries(held).filter(([key]) => !keys.includes(key))
      const isOwn = (one: Held) => one.environment_id === environment_id
      // The last key of an environment is the one that it uses.
      const isLast = left.filter(([, one]) => isOwn(one)).length === 1
      const used = ({ reservation: _, ...one }: Held): Held => one
      return {
        held: Object.fromEntries(
          left.map(([key, one]) => [key, isLast && isOwn(one) ? used(one) : one]),
        ),
      }
    },
  },
}
