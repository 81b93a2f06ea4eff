/** Pauses, repetitions, time limits and back-offs on a manual clock. */
import t from 'tap'
import { atMost, backoffMs, every, sleep, WorkInProgress } from '../../gateway/timing.ts'

function clock() {
  let now = 0
  let timers: { readonly at: number; readonly run: () => void }[] = []
  return {
    open: () => timers.length,
    later(ms: number, run: () => void) {
      const timer = { at: now + ms, run }
      timers.push(timer)
      return () => {
        timers = timers.filter((other) => other !== timer)
      }
    },
    pass(ms: number) {
      const end = now + ms
      for (;;) {
        const next = timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0]
        if (!next) break
        now = next.at
        timers = timers.filter((other) => other !== next)
        next.run()
      }
      now = end
    },
  }
}

t.test('sleep resolves after its time', async (t) => {
  const time = clock()
  let over = false
  const slept = sleep(time, 100).then(() => {
    over = true
  })
  time.pass(99)
  await Promise.resolve()
  t.notOk(over)
  time.pass(1)
  await slept
  t.ok(over)
})

t.test('every repeats until it is stopped, also by itself', async (t) => {
  const time = clock()
  let calls = 0
  const stop = every(time, 100, () => {
    if (++calls === 3) stop()
  })
  time.pass(250)
  t.equal(calls, 2)
  time.pass(1000)
  t.equal(calls, 3)
  t.equal(time.open(), 0)
})

t.test('atMost gives the result, the failure, or nothing after its time', async (t) => {
  const time = clock()
  t.equal(await atMost(time, 100, Promise.resolve(1)), 1)
  await t.rejects(atMost(time, 100, Promise.reject(new Error('broken'))), { message: 'broken' })
  t.equal(time.open(), 0, 'the timers are cancelled')
  const late = atMost(time, 100, new Promise<number>(() => {}))
  time.pass(100)
  t.equal(await late, undefined)
})

t.test('a back-off doubles up to its last pause', async (t) => {
  const pauses = { first: 1000, last: 10_000 }
  t.strictSame(
    [0, 1, 2, 3, 4, 2000].map((failures) => backoffMs(failures, pauses)),
    [1000, 2000, 4000, 8000, 10_000, 10_000],
  )
})

t.test('work in progress settles when the earlier work has ended', async (t) => {
  const work = new WorkInProgress()
  await work.settled()
  const [first, second, third] = [open(), open(), open()]
  const seen: string[] = []
  t.equal(work.add(first.promise), first.promise)
  void work.add(second.promise)
  const early = work.settled().then(() => seen.push('early'))
  void work.add(third.promise)
  const late = work.settled().then(() => seen.push('late'))
  third.end()
  first.fail()
  await Promise.allSettled([first.promise, third.promise])
  t.same(seen, [], 'the second is open')
  second.end()
  await Promise.all([early, late])
  t.same(seen.sort(), ['early', 'late'])

  const fourth = open()
  void work.add(fourth.promise)
  const latest = work.settled().then(() => seen.push('latest'))
  await Promise.all([first.promise.catch(() => {}), second.promise])
  t.equal(seen.includes('latest'), false)
  fourth.end()
  await latest
})
/** Returns a promise and functions that settle it. */
function open() {
  let end = () => {}
  let fail = () => {}
  const promise = new Promise<void>((resolve, reject) => {
    end = resolve
    fail = () => reject(new Error('failed'))
  })
  return { promise, end: () => end(), fail: () => fail() }
}
