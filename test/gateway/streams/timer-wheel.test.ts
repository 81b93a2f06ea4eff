/**
 * A timer wheel, which lets many tasks share a few timers. Invariant: each task runs once, at its
 * time or at most 250 ms later.
 */
import fc from 'fast-check'
import t from 'tap'
import { type Task, TimerWheel } from '../../../gateway/workers/timer-wheel.ts'
import { ManualClock } from '../../support/memory.ts'

t.test(
  'each task runs once, not before its time and at most 250 ms later, after any changes',
  async (t) => {
    const step = fc.oneof(
      fc.record({
        do: fc.constant('add' as const),
        task: fc.nat(5),
        ms: fc.integer({ min: 0, max: 2000 }),
      }),
      fc.record({ do: fc.constant('remove' as const), task: fc.nat(5) }),
      fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 0, max: 1500 }) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const clock = new ManualClock()
        const rounds = new TimerWheel({ monotonic: clock.now, later: clock.later })
        const wanted = new Map<number, number>()
        const tasks: Task[] = Array.from({ length: 6 }, (_, n) => ({
          due: () => {
            const at = wanted.get(n)
            wanted.delete(n)
            if (at === undefined || clock.now() < at || clock.now() > at + 250)
              throw new Error(`task ${n} is done at ${clock.now()}, wanted at ${at}`)
          },
        }))
        for (const next of steps) {
          if (next.do === 'wait') await clock.advance(next.ms)
          else if (next.do === 'add') {
            wanted.set(next.task, clock.now() + next.ms)
            rounds.add(next.ms, tasks[next.task] as Task)
          } else {
            wanted.delete(next.task)
            rounds.remove(tasks[next.task] as Task)
          }
        }
        await clock.advance(3000)
        if (wanted.size > 0) throw new Error(`${wanted.size} tasks were forgotten`)
      }),
      { numRuns: 200 },
    )
    t.pass()
  },
)

t.test('tasks with the same time share a timer, and no timer exists without tasks', (t) => {
  let timers = 0
  const rounds = new TimerWheel({
    monotonic: () => 1000,
    later: () => {
      timers++
      return () => {
        timers--
      }
    },
  })
  const tasks: Task[] = Array.from({ length: 100 }, () => ({ due() {} }))
  for (const task of tasks) rounds.add(20_000, task)
  t.equal(timers, 1)
  for (const task of tasks) rounds.remove(task)
  t.equal(timers, 0)
  t.end()
})
