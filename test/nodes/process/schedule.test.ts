/** How `npm test` distributes files over time and across processes. */
import { join } from 'node:path'
import t, { type Test } from 'tap'

interface Schedule {
  readonly computing: readonly string[]
  readonly waiting: readonly string[]
  readonly alone: readonly string[]
}
interface TestProcess {
  run(file: string): Promise<boolean>
  end(): Promise<void>
}
const { runSchedule, SECONDS, scheduleOf, secondsOf, startsNoProgram } = (await import(
  '../../../nodes/boot/test-schedule.mjs' as string
)) as {
  SECONDS: Readonly<Record<string, number>>
  scheduleOf(files: readonly string[]): Schedule
  secondsOf(file: string): number
  startsNoProgram(file: string): boolean
  runSchedule(
    schedule: Schedule,
    options: {
      readonly slots: number
      readonly together?: number
      readonly open: () => TestProcess
      readonly held?: { readonly files: ReadonlySet<string>; readonly until: Promise<void> }
    },
  ): Promise<void>
}
const { testsOf } = (await import('../../../nodes/boot/test-files.mjs' as string)) as {
  testsOf(root: string, names: readonly string[]): string[]
}
const all = testsOf(join(import.meta.dirname, '../../..'), ['test'])
const sum = (files: readonly string[]) => files.reduce((total, file) => total + secondsOf(file), 0)

t.test('every file is scheduled once', async (t) => {
  const { computing, waiting, alone } = scheduleOf(all)
  t.strictSame([...computing, ...waiting, ...alone].sort(), [...all].sort())
  t.strictSame(scheduleOf([]), { computing: [], waiting: [], alone: [] })
})

t.test('the longest files are known by names of existing files', async (t) => {
  t.strictSame(
    Object.keys(SECONDS).filter((name) => !all.includes(`test/${name}.test.ts`)),
    [],
  )
})

/**
 * Runs a schedule in virtual time. Asserts that files run concurrently only if they may.
 * @param breaks the files after which their process cannot run other files.
 * @returns the time at which the schedule ended, in seconds, and the files of each process.
 */
async function simulate(
  t: Test,
  schedule: Schedule,
  options: { readonly slots: number; readonly together?: number },
  breaks: readonly string[] = [],
): Promise<{ readonly seconds: number; readonly processes: readonly (readonly string[])[] }> {
  const running = new Map<string, { readonly end: number; readonly done: () => void }>()
  let now = 0
  let over = false
  let open = 0
  const processes: string[][] = []
  const ended = runSchedule(schedule, {
    ...options,
    open: () => {
      t.ok(++open <= options.slots, 'slots')
      const files: string[] = []
      processes.push(files)
      return {
        run: (file) =>
          new Promise((done) => {
            files.push(file)
            const usable = !breaks.includes(file)
            running.set(file, { end: now + secondsOf(file), done: () => done(usable) })
            const waiting = [...running.keys()].filter((one) => schedule.waiting.includes(one))
            t.ok(waiting.length <= 2, 'files that wait')
            if ([...running.keys()].some((one) => schedule.alone.includes(one)))
              t.equal(running.size, 1, 'alone')
          }),
        end: async () => void open--,
      }
    },
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
  t.equal(open, 0, 'every process was ended')
  t.strictSame(processes.flat().sort(), Object.values(schedule).flat().sort(), 'each ran once')
  return { seconds: now, processes }
}

t.test('no slot is idle for long', async (t) => {
  const schedule = scheduleOf(all)
  for (const slots of [1, 2, 3, 5]) {
    const best = Math.max(
      sum([...schedule.computing, ...schedule.waiting]) / slots,
      sum(schedule.waiting) / Math.min(slots, 2),
    )
    const seconds = (await simulate(t, schedule, { slots })).seconds - sum(schedule.alone)
    t.ok(seconds < 1.1 * best, `${slots} slots: ${seconds} s of at least ${best} s`)
  }
})

t.test('a process runs many files, until it breaks', async (t) => {
  const alone = 'test/hostile/pressure.test.ts'
  const schedule = scheduleOf(['a', 'b', 'c', 'd', 'e', alone])
  const { processes } = await simulate(t, schedule, { slots: 1 })
  t.strictSame(processes, [['a', 'b', 'c', 'd', 'e'], [alone]])
  const few = await simulate(t, schedule, { slots: 1, together: 2 })
  t.strictSame(few.processes, [['a', 'b'], ['c', 'd'], ['e'], [alone]])
  const broken = await simulate(t, schedule, { slots: 1 }, ['b'])
  t.strictSame(broken.processes, [['a', 'b'], ['c', 'd', 'e'], [alone]])
})

t.test('a file that waits runs beside those that compute, and two if they end last', async (t) => {
  const { waiting, computing } = scheduleOf(all)
  const [one = '', two = ''] = waiting
  for (const [some, expected] of [
    [
      [one, two],
      [one, computing[0], computing[1]],
    ],
    [waiting, [one, two, 'test/short.test.ts']],
  ] as const) {
    const started: string[] = []
    const schedule = {
      waiting: some,
      computing: some.length === 2 ? computing : ['test/short.test.ts'],
      alone: [],
    }
    void runSchedule(schedule, {
      slots: 3,
      open: () => ({
        run: (file) => {
          started.push(file)
          return new Promise(() => {})
        },
        end: async () => {},
      }),
    })
    t.strictSame(started, expected)
  }
})

t.test('held files wait, and then run in new processes', async (t) => {
  const held = new Set(['collects', 'held', 'waits'])
  let release = () => {}
  const until = new Promise<void>((done) => {
    release = done
  })
  const processes: string[][] = []
  const running = new Map<string, () => void>()
  const ended = runSchedule(
    { computing: ['collects', 'a', 'held', 'b', 'c'], waiting: ['waits'], alone: [] },
    {
      slots: 2,
      held: { files: held, until },
      open: () => {
        const files: string[] = []
        processes.push(files)
        return {
          run: (file) =>
            new Promise((done) => {
              files.push(file)
              running.set(file, () => done(true))
            }),
          end: async () => {},
        }
      },
    },
  )
  const finish = async (file: string) => {
    running.get(file)?.()
    await new Promise((turn) => setImmediate(turn))
  }
  t.strictSame(processes, [['a']], 'one slot is free')
  await finish('a')
  t.strictSame(processes, [['a', 'b']])
  release()
  await finish('nothing')
  t.strictSame(processes, [['a', 'b'], ['waits']], 'the other slot starts when files are released')
  await finish('b')
  t.strictSame(processes, [['a', 'b'], ['waits'], ['collects']], 'a new process')
  for (const file of ['waits', 'collects', 'held', 'c']) await finish(file)
  await ended
  t.strictSame(processes.flat().sort(), ['a', 'b', 'c', 'collects', 'held', 'waits'])
})

t.test('tests that may run during a compilation start no program', (t) => {
  const started = [
    'scenarios/runs/kill',
    'nodes/nats/nats',
    'client/tour/git-server',
    'hostile/rows',
  ]
  for (const name of started) t.notOk(startsNoProgram(`test/${name}.test.ts`), name)
  for (const name of ['actors/runs/model', 'checks', 'simulation-plants'])
    t.ok(startsNoProgram(`test/${name}.test.ts`), name)
  t.end()
})
