/**
 * The world stops at every single step of a node: each append, each read, each snapshot, each message. A second node then
 * takes over. Whatever the step was: what was acknowledged is there, every command acted once, every effect arrived once.
 */
import t from 'tap'
import type { Shard } from '../../nodes/host/shard.ts'
import { MemoryBus, settleAll } from '../memory.ts'
import { mortal } from './mortal.ts'
import { command, reply, runId, ToyWorld } from './toy.ts'

/** Ten commands with effects and a nap, checkpoints in between; a client repeats what is not answered until it is. */
async function play(crashAt: number): Promise<{ steps: number; answers: unknown[]; here: unknown; there: unknown; entries: number }> {
  const world = new ToyWorld()
  const bus = new MemoryBus()
  const other = await world.owner(1, world.deps(bus))
  const first = mortal(world.deps(bus), crashAt)
  let owner: Shard | undefined
  const replace = async () => { owner = await world.owner(0, world.deps(bus)) }
  try { owner = await world.owner(0, first.deps) } catch { await replace() }
  const answers: unknown[] = []
  for (let i = 0; i < 10; i++) {
    const send = command(runId(i === 3 ? 3 : 1), i === 3 ? 'nap' : 'add', i === 3 ? { at: world.clock.now() + 5000 } : { by: i, sibling: runId(2), abroad: runId(9, 1) }, `k${i}`)
    for (;;) {
      const answer = await Promise.race([owner?.submit(send) ?? Promise.resolve(undefined), settleAll().then(settleAll).then(() => undefined)])
      if (answer && !('not_owner' in answer)) { answers.push(reply(answer)); break }
      await replace()
    }
    await world.clock.advance(1100)
    if (first.dead() && owner?.deps === first.deps) await replace()
  }
  await world.clock.advance(10_000)
  if (first.dead() && owner?.deps === first.deps) await replace()
  await world.clock.advance(10_000)
  const ask = async (shard: Shard | undefined, id: string) => reply((await shard?.ask({ project: 'prj_1', kind: 'run', id }, 'get', {})) ?? { reply: undefined })
  const entries = world.journal.messages.flatMap((message) => (JSON.parse(new TextDecoder().decode(message.data)) as { entries: unknown[] }).entries).length
  return { steps: first.steps(), answers, here: [await ask(owner, runId(1)), await ask(owner, runId(2)), await ask(owner, runId(3))], there: await ask(other, runId(9, 1)), entries }
}

t.test('a node may die at any step: nothing acknowledged is lost, nothing acts twice', async (t) => {
  const clean = await play(0)
  t.match(clean.here, [{ count: 42 }, { told: 9 }, { count: 1000, wake: 0 }])
  t.match(clean.there, { told: 9 })
  t.ok(clean.steps > 60, `${clean.steps} steps to die at`)
  let wrong = 0
  for (let at = 1; at <= clean.steps; at++) {
    const crashed = await play(at)
    const same = JSON.stringify({ ...crashed, steps: 0 }) === JSON.stringify({ ...clean, steps: 0 })
    if (!same) { wrong++; t.strictSame({ ...crashed, steps: at }, { ...clean, steps: at }, `dying at step ${at}`) }
  }
  t.equal(wrong, 0)
})
