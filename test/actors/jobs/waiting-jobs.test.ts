/**
 * The order in which the waiting jobs of a queue are offered: by priority, capability, fairness key
 * and age.
 */
import t from 'tap'
import { QueueStage } from './queue-stage.ts'

t.test('higher priority comes first, then age', async (t) => {
  const queue = new QueueStage()
  for (const [id, priority] of [
    ['a', 0],
    ['b', 5],
    ['c', -1],
    ['d', 5],
    ['e', 0],
  ] as const) {
    queue.put(id, { priority })
    queue.at++
  }
  t.same(queue.line(), ['b', 'd', 'a', 'e', 'c'])
  queue.put('f', { priority: 5, enqueued_at: 1 })
  t.same(queue.line()[0], 'f', 'age is the time of the first enqueue, not of the arrival')
})

t.test('fairness keys take turns, so a flood of one key does not delay the others', async (t) => {
  const queue = new QueueStage()
  for (let i = 0; i < 6; i++) queue.put(`a${i}`, { fairness_key: 'a' })
  queue.put('b0', { fairness_key: 'b' })
  queue.put('b1', { fairness_key: '__proto__' })
  t.same(queue.line(), ['a0', 'b0', 'b1', 'a1', 'a2', 'a3', 'a4', 'a5'])
  queue.claim(['a0'])
  queue.put('c0', { fairness_key: 'c' })
  t.same(queue.line(4), ['b0', 'b1', 'a1', 'c0'], 'served keys and new keys go to the back')
})

t.test('a fairness key gains no credit while it is idle', async (t) => {
  const queue = new QueueStage()
  for (let i = 0; i < 20; i++) queue.put(`a${i}`, { fairness_key: 'a' })
  queue.claim(Array.from({ length: 10 }, (_, i) => `a${i}`))
  for (let i = 0; i < 5; i++) queue.put(`b${i}`, { fairness_key: 'b' })
  t.same(queue.line(6), ['a10', 'b0', 'a11', 'b1', 'a12', 'b2'])
})

t.test('each capability has its own queue, and capabilities take turns', async (t) => {
  const queue = new QueueStage()
  for (let i = 0; i < 5; i++) queue.put(`a${i}`, { action_name: 'nobody-can' })
  for (let i = 0; i < 2; i++) queue.put(`b${i}`, { action_name: 'mail' })
  queue.put('m', { kind: 'llm_generation', provider: 'p', model: 'm' })
  queue.put('e', { environment_id: 'env_1' })
  t.same(queue.line(2), ['a0', 'b0', 'm', 'e', 'a1', 'b1'], 'the limit holds for each capability')
  queue.put('p', { priority: 1, action_name: 'mail' })
  t.same(
    queue.line(2),
    ['p', 'a0', 'b0', 'm', 'e', 'a1'],
    'priorities of one capability share its limit',
  )
  t.same(queue.line(0), [])
})

t.test('at any time the busy fairness keys differ by at most one job served', async (t) => {
  const queue = new QueueStage()
  const keys = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
  const served = new Map(keys.map((key) => [key, 0]))
  const sizes = new Map(keys.map((key, i) => [key, 40 + 7 * i]))
  for (const key of keys)
    for (let i = 0; i < (sizes.get(key) ?? 0); i++) queue.put(`${key}${i}`, { fairness_key: key })
  for (let n = 0; n < 40 * keys.length; n++) {
    const [id = ''] = queue.line(1)
    queue.claim(id)
    served.set(id[0] ?? '', (served.get(id[0] ?? '') ?? 0) + 1)
    const counts = [...served.values()]
    if (Math.max(...counts) - Math.min(...counts) > 1)
      t.fail(`after ${n + 1} jobs: ${counts.join(' ')}`)
  }
  t.same(
    [...served.values()],
    keys.map(() => 40),
  )
})

t.test('the cost of 100,000 waiting jobs is reported', async (t) => {
  const queue = new QueueStage()
  const count = 100_000
  const started = process.cpuUsage()
  const before = performance.now()
  for (let i = 0; i < count; i++) {
    queue.at++
    queue.put(`job_${i}`, {
      fairness_key: `tenant-${i % 100}`,
      action_name: `action-${i % 7}`,
      priority: i % 3,
    })
  }
  const full = performance.now()
  for (let left = count; left > 0; ) {
    const ids = queue.line(64)
    queue.claim(ids)
    left -= ids.length
  }
  const claimed = performance.now()
  t.same(queue.line(), [])
  t.comment(
    `${count} jobs: enqueue ${Math.round(full - before)} ms, ` +
      `list and claim ${Math.round(claimed - full)} ms, ` +
      `processor ${Math.round(process.cpuUsage(started).user / 1000)} ms`,
  )
})
