/**
 * Runs a scenario repeatedly, with the first owner of a shard dying at each of its steps.
 * Invariant: the scenario ends as it does without a crash. Clients repeat unanswered commands under
 * the same id, and a new owner takes over when no answer comes.
 */

import type { Test } from 'tap'
import { answerEach } from '../../../nodes/host/effects/pushes.ts'
import { envelopeText, parseEnvelope } from '../../../nodes/host/memory/codec.ts'
import type { Shard } from '../../../nodes/host/shard.ts'
import type { Command, Event, Kind } from '../../../protocol/entry.ts'
import { subjects } from '../../../protocol/subjects.ts'
import type { ClaimedJob } from '../../../protocol/workers/socket.ts'
import { type MemoryBus, settleAll } from '../../support/memory.ts'
import { reply, type ToyWorld } from '../support/toy.ts'
import { mortal } from './mortal.ts'

export type Open = Record<string, unknown>
type Answer = Parameters<typeof reply>[0]
const silence = (): Promise<undefined> =>
  settleAll()
    .then(settleAll)
    .then(() => undefined)

/**
 * Starts a shard whose first owner dies at its `crashAt`-th step, or never if `crashAt` is 0. The
 * returned `send` and `ask` address the current owner of the shard. Their parameter `stays` is the
 * owner of another shard, which does not die. If it is given, they address that owner instead.
 */
export async function dying(
  world: ToyWorld,
  bus: MemoryBus,
  crashAt: number,
  { project = 'prj_1', shard = 0 }: { project?: string; shard?: 0 | 1 } = {},
) {
  const first = mortal(world.deps(bus), crashAt)
  let owner: Shard | undefined
  const replace = async () => {
    owner = await world.owner(shard, world.deps(bus))
  }
  try {
    owner = await world.owner(shard, first.deps)
  } catch {
    await replace()
  }
  const revive = async () => {
    if (first.dead() && owner?.deps === first.deps) await replace()
  }
  const sure = async (
    ask: (owner: Shard) => Promise<Answer>,
    stays: Shard | undefined,
  ): Promise<unknown> => {
    for (;;) {
      const asked = stays ?? owner
      const answer = await Promise.race([asked && ask(asked).catch(() => undefined), silence()])
      if (answer && !('not_owner' in answer)) return reply(answer)
      await (stays ? revive() : replace())
    }
  }
  let commands = 0
  return {
    revive,
    steps: () => first.steps(),
    owner: () => owner,
    send: (
      kind: Kind,
      to: string,
      name: string,
      input: object,
      stays?: Shard,
    ): Promise<unknown> => {
      const command: Command = {
        project,
        kind,
        id: to,
        name,
        input,
        command_id: `c${++commands}`,
        origin: { at: 0, principal: { type: 'user', id: 'ann' } },
      }
      return sure((one) => one.submit(command), stays)
    },
    ask: (
      kind: Kind,
      to: string,
      name: string,
      input: object = {},
      stays?: Shard,
    ): Promise<unknown> => sure((one) => one.ask({ project, kind, id: to }, name, input), stays),
  }
}

/** Subscribes as the gateway `g`. Returns a live map of the assigned jobs by lease token. */
export function handedTo(bus: MemoryBus): Map<string, ClaimedJob> {
  const handed = new Map<string, ClaimedJob>()
  bus.subscribe(subjects.gateway('g'), (sent) =>
    answerEach(sent, (message) => {
      if (message.type === 'assign') handed.set(message.job.lease_token, message.job)
      return { ok: true }
    }),
  )
  return handed
}

/** Reads the events of the journal by kind of actor, each with the id of its actor in `of`. */
export class Told {
  readonly #events = new Map<Kind, (Event & Open & { readonly of: string })[]>()
  readonly #world: ToyWorld
  #read = 0
  constructor(world: ToyWorld) {
    this.#world = world
  }
  of(kind: Kind): readonly (Event & Open & { readonly of: string })[] {
    for (const { messages } = this.#world.journal; this.#read < messages.length; this.#read++) {
      const { entries } = parseEnvelope(
        envelopeText(messages[this.#read]?.data ?? new Uint8Array()),
      )
      for (const entry of entries) {
        const known = this.#events.get(entry.kind) ?? []
        this.#events.set(entry.kind, known)
        for (const event of entry.events) known.push({ ...event, of: entry.id })
      }
    }
    return this.#events.get(kind) ?? []
  }
}

const each = function* (steps: number): Generator<number> {
  for (let at = 1; at <= steps; at++) yield at
}

/**
 * Runs a scenario with a crash at each of its steps, or only at `steps`. Each result must equal
 * `clean`, the result without a crash.
 */
export async function dieAtEach<P extends { readonly steps: number }>(
  t: Pick<Test, 'equal' | 'strictSame'>,
  clean: P,
  play: (crashAt: number) => Promise<P>,
  steps: Iterable<number> = each(clean.steps),
): Promise<void> {
  const story = (played: P) => JSON.stringify({ ...played, steps: 0 })
  let deaths = 0
  let different = 0
  for (const at of steps) {
    deaths++
    const crashed = await play(at)
    if (story(crashed) === story(clean)) continue
    different++
    t.strictSame({ ...crashed, steps: at }, { ...clean, steps: at }, `dying at step ${at}`)
  }
  t.equal(different, 0, `${deaths} deaths, and always the same story`)
}
