/**
 * Turns of agents while a shard node, a gateway and the executor are killed: each turn ends as its
 * script specifies, no tool call is executed twice, and followers receive every event. This is a
 * short form of `npm run chaos -- --turns 500` with the same checks.
 */
import t from 'tap'
import { runTurns } from '../../chaos/turns/run.ts'

t.setTimeout(180_000)
t.test('turns complete while each role is killed once', { timeout: 180_000 }, async (t) => {
  const { history, violations } = await runTurns({
    turns: 24,
    sessions: 8,
    strikes: 3,
    seed: 7,
    small: true,
    lease: 15,
    signal: new AbortController().signal,
    say: (line) => t.comment(line),
  })
  t.strictSame(violations, [])
  t.strictSame(history.strikes.map(({ what }) => what.split('-')[0]).sort(), [
    'executor',
    'gateway',
    'shards',
  ])
  t.ok(
    history.followed.some(({ lost }) => lost > 0),
    'connections were lost',
  )
})
