/** The time axis, filters, typed JSON, differences and the graph of a workflow. */
import t from 'tap'
import { graphOf, placeGraph } from '../../console/graph/graph.ts'
import { openingView } from '../../console/graph/view.ts'
import { differences, pairSteps } from '../../console/pages/runs/compare/diff.ts'
import { addResults } from '../../console/pages/runs/list/bulk-progress.ts'
import {
  activeFilters,
  filterOf,
  isoTime,
  localTime,
  queryOf,
  sortOf,
} from '../../console/pages/runs/list/filters.ts'
import { listedRun, runPacking } from '../../console/pages/runs/list/listed-run.ts'
import { readObject, readValue, writeValue } from '../../console/pages/runs/run/actions/json.ts'
import { barOf, marksOf, pan, zoom } from '../../console/pages/runs/run/data/axis.ts'

t.test('an axis is zoomed and moved within the whole time', async (t) => {
  const whole = { from: 0, to: 1000 }
  t.strictSame(zoom(whole, 2, 0.5, whole), { from: 250, to: 750 })
  t.strictSame(zoom({ from: 0, to: 500 }, 0.1, 0, whole), whole)
  t.strictSame(pan({ from: 0, to: 100 }, -1, whole), { from: 0, to: 100 })
  t.strictSame(pan({ from: 0, to: 100 }, 0.5, whole), { from: 50, to: 150 })
  t.strictSame(
    marksOf(whole, 0, 6).map(({ offset, position }) => [offset, position]),
    [0, 200, 400, 600, 800, 1000].map((at) => [at, at / 1000]),
  )
  t.strictSame(barOf(-100, 500, whole), { left: 0, width: 50 })
  t.equal(barOf(1001, 2000, whole), undefined)
})

t.test('filters survive the way through the address', async (t) => {
  const query = new URLSearchParams('status=failed,queued&q=+x+&queue=gpu&unknown=1&sort=ended')
  const filter = filterOf(query)
  t.strictSame(filter, { q: 'x', queue: 'gpu', status: ['failed', 'queued'] })
  t.strictSame(sortOf(query), { by: 'ended', order: 'desc' })
  const back = queryOf(filter, sortOf(query))
  t.match(back, { status: 'failed,queued', q: 'x', queue: 'gpu', loop_id: '', sort: 'ended' })
  t.strictSame(activeFilters(filter), [['queue', 'gpu']])
  const at = '2031-02-03T04:05:00.000Z'
  t.equal(isoTime(localTime(at)), at)
  t.equal(isoTime(''), '')
})

t.test('typed JSON is an object, or has a fault in words', async (t) => {
  t.strictSame(readObject(''), { value: {} })
  t.strictSame(readObject('{"a":[1]}'), { value: { a: [1] } })
  t.match(readObject('[1]').fault, /must be a JSON object/)
  t.match(readObject('{"a":').fault, /not valid JSON/)
  t.equal(readValue('integer', '7'), 7)
  t.equal(readValue('string', '7'), '7')
  t.strictSame(readValue('array', '[1,2]'), [1, 2])
  t.equal(readValue('array', '[1,'), '[1,')
  t.equal(readValue('number', ''), undefined)
  t.equal(writeValue('array', [1]), '[1]')
  t.equal(writeValue('string', 'a"b'), 'a"b')
})

t.test('two values and the steps of two runs are compared', async (t) => {
  t.strictSame(differences({ a: 1, b: [1, 2] }, { a: 1, b: [1, 3], c: null }), [
    { path: 'b.1', a: 2, b: 3 },
    { path: 'c', a: undefined, b: null },
  ])
  t.strictSame(differences({ __proto__: 1 }, {}), [])
  t.strictSame(differences('x', { x: 1 }), [{ path: '', a: 'x', b: { x: 1 } }])
  let deep: unknown = 1
  let other: unknown = 2
  for (let i = 0; i < 1000; i++) [deep, other] = [{ d: deep }, { d: other }]
  t.equal(differences(deep, other).length, 1, 'deep values are compared without recursion faults')
  const step = (step_key: string, status: string) => ({ step_key, status, attempt: 1 }) as never
  t.strictSame(
    pairSteps([step('a', 'completed'), step('b', 'failed')], [step('b', 'completed')]).map(
      ({ key, differs }) => [key, differs],
    ),
    [
      ['a', true],
      ['b', true],
    ],
  )
})

t.test('results of actions on many runs are counted by message', async (t) => {
  const none = { done: 0, ok: 0, refused: new Map<string, number>() }
  const refused = { ok: false, error: { code: 'x', message: 'not failed' } }
  const once = addResults(none, [{ ok: true }, refused])
  t.strictSame(addResults(once, [refused]), {
    done: 3,
    ok: 1,
    refused: new Map([['not failed', 2]]),
  })
})

t.test('a workflow is a graph with frames around branches and items', async (t) => {
  const act = (id?: string) => ({
    ...(id !== undefined && { id }),
    kind: 'action' as const,
    config: { action_name: 'x' },
  })
  const graph = graphOf({
    steps: [
      act(),
      { id: 'each', kind: 'for_each', config: { items: [1], steps: [act('p'), act('q')] } },
      {
        id: 'both',
        kind: 'parallel',
        config: {
          branches: [
            { id: 'l', steps: [act('s')] },
            { id: 'r', steps: [act('s')] },
          ],
        },
      },
      act('end'),
    ],
    cleanup: [act('tidy')],
  })
  t.strictSame(Object.fromEntries(graph.nodes.map(({ id, next }) => [id, next])), {
    0: ['each'],
    each: ['each/p'],
    'each/p': ['each/q'],
    'each/q': ['both'],
    both: ['both/l/s', 'both/r/s'],
    'both/l/s': ['end'],
    'both/r/s': ['end'],
    end: ['cleanup/tidy'],
    'cleanup/tidy': [],
  })
  t.strictSame(
    graph.frames.map(({ kind }) => kind),
    ['for_each', 'parallel', 'cleanup'],
  )
  const placed = await placeGraph(graph)
  t.equal(placed.lines.length, 9)
  const [one, next] = [placed.boxes.get('each'), placed.boxes.get('each/p')]
  t.ok(one && next && next.y > one.y + one.height, 'a step is below the one before it')
})

t.test('a long graph opens at a readable scale with its node in sight', async (t) => {
  const steps = Array.from({ length: 200 }, (_, index) => ({
    id: `s${index}`,
    kind: 'sleep' as const,
    config: { duration: '0s' },
  }))
  const frame = { width: 800, height: 500 }
  const long = await placeGraph(graphOf({ steps }))
  t.ok(long.height > 10_000)
  for (const index of [0, 120, 199]) {
    const { scale, y } = openingView(long, frame, `s${index}`)
    t.equal(scale, 1)
    const box = long.boxes.get(`s${index}`)
    const top = (box?.y ?? 0) * scale + y
    t.ok(top >= 0 && top + (box?.height ?? 0) * scale <= frame.height, `s${index} is visible`)
  }
  const wide = { boxes: long.boxes, width: 9000, height: 9000 }
  t.strictSame(openingView(wide, frame, undefined), { scale: 0.6, x: 0, y: 0 })
  const short = await placeGraph(graphOf({ steps: steps.slice(0, 6) }))
  const { scale, y } = openingView(short, frame, 's5')
  t.ok(scale >= 0.6 && scale < 1 && y >= 0, 'a graph that can be read as a whole is shown whole')
})

t.test('a list keeps of a run what it shows', async (t) => {
  const at = '2031-02-03T04:05:00.000Z'
  const times = { created_at: at, updated_at: at }
  const run = { id: 'r', status: 'failed', definition_id: 'w', queue: 'gpu', ...times }
  const kept = listedRun({ ...run, result: { big: [] }, error_message: 'no', name: 'n' } as never)
  t.match(kept, { ...run, error_message: 'no', name: 'n', loop_id: undefined })
  t.notOk('result' in kept)
  const ofLoop = listedRun({
    ...{ id: 'l', status: 'queued', loop_id: 'x', source: { type: 'api' }, ...times },
  } as never)
  t.match(ofLoop, { loop_id: 'x', source: 'api', definition_id: '', queue: undefined })
  for (const one of [kept, ofLoop])
    t.strictSame(runPacking.unpack(JSON.parse(JSON.stringify(runPacking.pack(one)))), one)
})
