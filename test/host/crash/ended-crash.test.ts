/**
 * A node dies before and after each step while runs end, are evicted from memory, and receive late
 * messages. Invariant: the next owner reads each ended run from the journal in its last state.
 */
import t from 'tap'
import { MemoryBus } from '../../support/memory.ts'
import { endingKinds, runId, ToyWorld } from '../support/toy.ts'
import { dieAtEach, dying } from './dying.ts'

const RUNS = 6

/** Ends a run in each round. Sends a command and a tell to runs that ended two rounds before. */
async function play(
  crashAt: number,
): Promise<{ steps: number; answers: unknown[]; ends: unknown }> {
  const world = new ToyWorld(undefined, endingKinds)
  const { send, ask, revive, steps, owner } = await dying(world, new MemoryBus(), crashAt)
  const answers: unknown[] = []
  for (let n = 0; n < RUNS + 2; n++) {
    if (n < RUNS) {
      answers.push(
        await send('run', runId(n), 'add', { by: 1, sibling: runId(Math.max(0, n - 2)) }),
      )
      answers.push(await send('run', runId(n), 'end', {}))
    }
    if (n >= 2) answers.push(await send('run', runId(n - 2), 'add', { by: 10 }))
    await world.clock.advance(1100)
    await revive()
  }
  await world.clock.advance(5000)
  await revive()
  await world.clock.advance(5000)
  const taken = steps()
  const left = owner()?.instances.size
  const ends: unknown[] = []
  for (let n = 0; n < RUNS; n++) ends.push(await ask('run', runId(n), 'get'))
  const stored = [...world.snapshots.values.keys()].filter((key) => key.includes('run_')).length
  return { steps: taken, answers, ends: { ends, left, stored } }
}

t.test('ended runs are known to the next owner, at whatever step a node dies', async (t) => {
  const clean = await play(0)
  const told = [3, 1, 1, 1, 0, 0]
  t.match(clean.ends, {
    ends: told.map((heard) => ({ count: 11, told: heard, over: true })),
    left: 0,
    stored: 0,
  })
  t.ok(clean.steps > 60, `${clean.steps} steps to die at`)
  await dieAtEach(t, clean, play)
})
