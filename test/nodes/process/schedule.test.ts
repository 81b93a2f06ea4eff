/** How `npm test` distributes files over processes, and processes over time. */
import { join } from 'node:path'
import t, { type Test } from 'tap'

interface Process {
  readonly name: string
  readonly files: readonly string[]
  readonly seconds: number
}
interface Schedule {
  readonly computing: readonly Process[]
  readonly waiting: readonly Process[]
  readonly alone: readonly Process[]
}
const { runSchedule, SECONDS, scheduleOf } = (await import(
  '../../../nodes/boot/test-schedule.mjs' as string
)) as {
  SECONDS: Readonly<Record<string, number>>
  scheduleOf(
    files: readonly string[],
    options?: { readonly most?: number; readonly separate?: boolean },
  ): Schedule
  runSchedule(
    schedule: Schedule,
    slots: number,
    run: (process: Process) => Promise<void>,
  ): Promise<void>
}
const { testsOf } = (await import('../../../nodes/boot/test-files.mjs' as string)) as {
  testsOf(root: string, names: readonly string[]): string[]
}
const all = testsOf(join(import.meta.dirname, '../../..'), ['test'])
const processesOf = ({ computing, waiting, alone }: Schedule) => [
  ...computing,
  ...waiting,
  ...alone,
]
const filesOf = (schedule: Schedule) => processesOf(schedule).flatMap(({ files }) => files)

t.test('every file belongs to one process', async (t) => {
  for (const options of [{}, { most: 2 }, { separate: true }])
    t.strictSame(filesOf(scheduleOf(all, options)).sort(), [...all].sort())
  t.strictSame(processesOf(scheduleOf([])), [])
  t.ok(processesOf(scheduleOf(all, { separate: true })).every(({ files }) => files.length === 1))
  const few = all.filter((file) => file.startsWith('test/actors/'))
  t.equal(scheduleOf(few, { most: 2 }).computing.length, 2)
})

t.test('the longest files are known by names of existing files', async (t) => {
  t.strictSame(
    Object.keys(SECONDS).filter((name) => !all.includes(`test/${name}.test.ts`)),
    [],
  )
})

/** Runs a schedule in virtual time. Returns when it ends, and asserts what may run at once. */
async function simulate(t: Test, schedule: Schedule, slots: number): Promise<number> {
  const running = new Map<Process, { readonly end: number; readonly done: () => void }>()
  let now = 0
  let over = false
  const began: Process[] = []
  const ended = runSchedule(schedule, slots, (process) => {
    began.push(process)
    return new Promise<void>((done) => {
      running.set(process, { end: now + process.seconds, done })
      t.ok(running.size <= slots, 'slots')
      const waiting = [...running.keys()].filter((one) => schedule.waiting.includes(one))
      t.ok(waiting.length <= 2, 'processes that wait')
      if ([...running.keys()].some((one) => schedule.alone.includes(one)))
        t.equal(running.size, 1, 'alone')
    })
  }).then(() => {
    over = true
  })
  while (!over) {
    const [next] = [...running].sort(([, a], [, b]) => a.end - b.end)
    if (next) {
      running.delete(next[0])
      now = next[1].end
      next[1].done()
    }
    await new Promise((turn) => setImmediate(turn))
  }
  await ended
  t.strictSame([...began].sort(byName), [...processesOf(schedule)].sort(byName), 'each ran once')
  return now
}
const byName = (a: Process, b: Process) => (a.name < b.name ? -1 : 1)

t.test('no slot is idle for long', async (t) => {
  const schedule = scheduleOf(all)
  const sum = (some: readonly Process[]) => some.reduce((total, { seconds }) => total + seconds, 0)
  const alone = sum(schedule.alone)
  for (const slots of [1, 2, 3, 5]) {
    const best = Math.max(
      sum([...schedule.computing, ...schedule.waiting]) / slots,
      sum(schedule.waiting) / Math.min(slots, 2),
    )
    const seconds = (await simulate(t, schedule, slots)) - alone
    t.ok(seconds < 1.1 * best, `${slots} slots: ${seconds} s of at least ${best} s`)
  }
})

t.test('a process that waits runs beside those that compute', async (t) => {
  const schedule = scheduleOf(all)
  const started: Process[] = []
  const never = runSchedule(schedule, 3, (process) => {
    started.push(process)
    return new Promise<void>(() => {})
  })
  t.ok(never)
  t.strictSame(started, [schedule.waiting[0], schedule.computing[0], schedule.computing[1]])
})
