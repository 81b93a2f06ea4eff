/**
 * Deliberate faults. Each breaks one guarantee of the service, and the checks of the simulation
 * must detect it.
 */

import type { AnyActor } from '../../../actors/actor.ts'
import type { InteractionState } from '../../../actors/interactions/state.ts'
import type { QueueState } from '../../../actors/jobs/state.ts'
import type { LoopState } from '../../../actors/loops/state.ts'
import { watched } from '../../../actors/runs/inbound/deliver.ts'
import type { RunState } from '../../../actors/runs/state.ts'
import type { WorkerState } from '../../../actors/workers/worker.ts'
import type { ShardAnswer } from '../../../nodes/host/deps.ts'
import { Batch } from '../../../nodes/host/durability/batch.ts'
import { EndedIndex } from '../../../nodes/host/durability/ended-index.ts'
import { Effects } from '../../../nodes/host/effects/effects.ts'
import type { ActorInstance } from '../../../nodes/host/memory/actor-instance.ts'
import { Shard } from '../../../nodes/host/shard.ts'
import type { Command } from '../../../protocol/entry.ts'
import { isRefusal } from '../../../protocol/errors.ts'
import type { JobReport } from '../../../protocol/internal.ts'
import type { Plant } from '../simulation.ts'
import { deciding } from './planted.ts'
import { replayPlants } from './replay-plants.ts'
import { sessionPlants } from './session-plants.ts'

/** Replaces a method of a class. Returns a function that restores it. */
function replace<T extends object, K extends keyof T>(target: T, name: K, value: T[K]): () => void {
  const original = target[name]
  target[name] = value
  return () => {
    target[name] = original
  }
}

/**
 * The reply to `ledger.add` is sent before its append is acknowledged. The reply is computed on a
 * copy of the state, while the command is processed as usual.
 */
const early: Plant = {
  name: 'answers before the acknowledgement',
  seed: 14,
  install: () => {
    const decide = Shard.prototype.decide
    return replace(
      Shard.prototype,
      'decide',
      function (this: Shard, command: Command, answer: (given: ShardAnswer) => void) {
        const cell =
          command.name === 'ledger.add' && this.open ? this.instances.loaded(command) : undefined
        decide.call(this, command, cell ? () => {} : answer)
        if (!cell) return
        const copy: ActorInstance = {
          ...cell,
          state: structuredClone(cell.state),
          seen: new Map(cell.seen),
          taken: new Map(cell.taken),
        }
        void Promise.resolve(new Batch(this.deps, this.shard, 0, () => copy).decide(command)).then(
          answer,
        )
      },
    )
  },
}

/** Appends ignore the expected sequence, so a former owner can continue to write. */
const unfenced: Plant = {
  name: 'does not fence older owners',
  seed: 35,
  append: (journal, shard, data, _, id, at) => journal.force(shard, data, id, at),
}

const hasty: Plant = {
  name: 'moves the checkpoint before effects are performed',
  seed: 55,
  install: () => replace(Effects.prototype, 'lowestPending', () => undefined),
}

const negligent: Plant = {
  name: 'omits ended actors from the index of its checkpoint',
  install: () => replace(EndedIndex.prototype, 'add', async () => {}),
}

const nameless: Plant = {
  name: 'gives effects new ids',
  seed: 14,
  deps: (deps) => ({
    ...deps,
    bus: {
      ...deps.bus,
      request: (subject, message, timeout) => {
        const { command, commands } = message as {
          command?: Command
          commands?: readonly Command[]
        }
        const renamed = (one: Command): Command =>
          one.command_id.startsWith('e:')
            ? { ...one, command_id: `x:${[...deps.random.bytes(8)].join('.')}` }
            : one
        const sent = commands
          ? { type: 'commands', commands: commands.map(renamed) }
          : command
            ? { type: 'command', command: renamed(command) }
            : message
        return deps.bus.request(subject, sent, timeout)
      },
    },
  }),
}

/** Any report for a leased job is accepted, regardless of its token. */
const credulous: Plant = {
  name: 'accepts superseded leases',
  seed: 276,
  kinds: (kinds) =>
    deciding<QueueState, JobReport>(
      kinds,
      'queue',
      'queue.report',
      (report) => (state, input, cause) => {
        const lease = Object.hasOwn(state.jobs, input.job_id)
          ? state.jobs[input.job_id]?.lease
          : undefined
        return report(state, lease ? { ...input, lease_token: lease.token } : input, cause)
      },
    ),
}

const deaf: Plant = {
  name: 'does not deliver answers to waiting runs',
  seed: 12,
  kinds: (kinds) =>
    deciding(kinds, 'interaction', 'interaction.respond', (respond) => (state, input, cause) => {
      const decided = respond(state, input, cause)
      return isRefusal(decided) ? decided : { ...decided, tells: [] }
    }),
}

const greedy: Plant = {
  name: 'accepts two answers of one person',
  seed: 36,
  kinds: (kinds) =>
    deciding<InteractionState | null, unknown>(
      kinds,
      'interaction',
      'interaction.respond',
      (respond) => (state, input, cause) =>
        respond(state && { ...state, record: { ...state.record, responses: [] } }, input, cause),
    ),
}

const rash: Plant = {
  name: 'opens waits before the matcher confirms them',
  seed: 36,
  kinds: (kinds) =>
    deciding(kinds, 'run', 'run.start', (start) => (state, input, cause) => {
      const decided = start(state, input, cause)
      const at = isRefusal(decided) || !decided.next ? undefined : (decided.next as RunState)
      const { wait } = at?.engine ?? {}
      if (isRefusal(decided) || !at || wait?.kind !== 'event' || !wait.asked) return decided
      const opened = watched(at, { wait_id: wait.id }, cause)
      return isRefusal(opened)
        ? decided
        : { ...decided, events: [...decided.events, ...opened.events], next: opened.next }
    }),
}

const mute: Plant = {
  name: 'does not deliver events to waiting runs',
  seed: 2,
  kinds: (kinds) => ({
    ...kinds,
    events: { ...kinds.events, react: { ...kinds.events.react, 'source.published': () => [] } },
  }),
}

const hurried: Plant = {
  name: 'counts stopping runs as ended',
  seed: 6,
  kinds: (kinds) => {
    const gone = (state: LoopState, { run_id }: { readonly run_id: string }): LoopState => {
      delete state.active[run_id]
      state.line = state.line.filter((waiting) => waiting.run_id !== run_id)
      return state
    }
    // Decisions also return the state after their events. That state is dropped, so that the
    // replaced `evolve` takes effect.
    return {
      ...kinds,
      loop: {
        ...kinds.loop,
        evolve: {
          ...kinds.loop.evolve,
          'run.displaced': gone as unknown as AnyActor['evolve'][string],
        },
        decide: unkept(kinds.loop.decide),
      },
    }
  },
}
const unkept = (decide: AnyActor['decide']): AnyActor['decide'] =>
  Object.fromEntries(
    Object.entries(decide).map(([name, arm]) => [
      name,
      ((state: never, input: never, cause: never) => {
        const decided = arm(state, input, cause)
        if (isRefusal(decided)) return decided
        const { next: _, ...rest } = decided
        return rest
      }) as AnyActor['decide'][string],
    ]),
  )

const generous: Plant = {
  name: 'grants slots beyond the limit',
  seed: 23,
  kinds: (kinds) =>
    deciding<unknown, object>(kinds, 'plan', 'place.ask', () => (_, wanting) => ({
      events: [{ ...wanting, type: 'place.given' }],
      reply: undefined,
    })),
}

const careless: Plant = {
  name: 'keeps the loops of a deleted project',
  seed: 3,
  kinds: (kinds) => ({
    ...kinds,
    project: { ...kinds.project, react: { ...kinds.project.react, 'project.ended': () => [] } },
  }),
}

const outdated: Plant = {
  name: 'treats the end of an older connection as that of the newer one',
  seed: 14,
  kinds: (kinds) =>
    deciding<WorkerState, object>(
      kinds,
      'worker',
      'worker.closed',
      (closed) => (state, input, cause) =>
        closed(state, { ...input, generation: state.registration?.generation }, cause),
    ),
}

const impatient: Plant = {
  name: 'ends leases when the owner of their queue changes',
  seed: 221,
  kinds: (kinds) => {
    const recover = (state: QueueState, at: number): QueueState => {
      for (const id of state.due) {
        const lease = state.jobs[id]?.lease
        if (lease) lease.expires_at = at
      }
      return state
    }
    return { ...kinds, queue: { ...kinds.queue, recover: recover as never } }
  },
}

export const plants: readonly Plant[] = [
  early,
  unfenced,
  hasty,
  negligent,
  nameless,
  credulous,
  deaf,
  greedy,
  rash,
  mute,
  hurried,
  generous,
  careless,
  outdated,
  impatient,
  ...replayPlants,
  ...sessionPlants,
]
