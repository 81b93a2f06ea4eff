/**
 * A node dies before and after each of its appends, reads, snapshots and requests, and a second
 * node takes over. Invariants: acknowledged commands are stored, each command takes effect once,
 * and each effect is delivered once.
 */

import t from 'tap'
import { envelopeText, parseEnvelope } from '../../../nodes/host/memory/codec.ts'
import { MemoryBus } from '../../support/memory.ts'
import { runId, ToyWorld } from '../support/toy.ts'
import { dieAtEach, dying } from './dying.ts'

/**
 * Sends nine commands with effects and one that sets a timer, with checkpoints in between. The
 * client repeats unanswered commands.
 */
async function play(
  crashAt: number,
): Promise<{ steps: number; answers: unknown[]; here: unknown; there: unknown; entries: number }> {
  const world = new ToyWorld()
  const bus = new MemoryBus()
  const other = await world.owner(1, world.deps(bus))
  const { send, ask, revive, steps } = await dying(world, bus, crashAt)
  const answers: unknown[] = []
  for (let i = 0; i < 10; i++) {
    answers.push(
      i === 3
        ? await send('run', runId(3), 'nap', { at: world.clock.now() + 5000 })
        : await send('run', runId(1), 'add', { by: i, sibling: runId(2), abroad: runId(9, 1) }),
    )
    await world.clock.advance(1100)
    await revive()
  }
  for (let i = 0; i < 2; i++) {
    await world.clock.advance(10_000)
    await revive()
  }
  const entries = world.journal.messages.flatMap(
    (message) => parseEnvelope(envelopeText(message.data)).entries,
  ).length
  const taken = steps()
  return {
    steps: taken,
    answers,
    here: [
      await ask('run', runId(1), 'get'),
      await ask('run', runId(2), 'get'),
      await ask('run', runId(3), 'get'),
    ],
    there: await ask('run', runId(9, 1), 'get', {}, other),
    entries,
  }
}

t.test(
  'a node may die at any step: nothing acknowledged is lost, nothing acts twice',
  async (t) => {
    const clean = await play(0)
    t.match(clean.here, [{ count: 42 }, { told: 9 }, { count: 1000, wake: 0 }])
    t.match(clean.there, { told: 9 })
    t.ok(clean.steps > 60, `${clean.steps} steps to die at`)
    await dieAtEach(t, clean, play)
  },
)
