/** How the times and bytes of profiles are attributed to modules and functions. */
import fc from 'fast-check'
import t from 'tap'
import {
  allocationsOf,
  attribute,
  type CallNode,
  callsOf,
  type Located,
} from '../../bench/cost/attribute.ts'
import { fileOf, moduleOf } from '../../bench/cost/modules.ts'

const frame = (functionName: string, url = '') => ({
  functionName,
  url,
  lineNumber: 6,
  columnNumber: 0,
})
const node = (name: string, url: string, weight: number, ...children: CallNode[]): CallNode => ({
  frame: frame(name, url),
  weight,
  children,
})
const locate = ({ url }: { readonly url: string }): Located => {
  const file = fileOf(url)
  return { file, module: moduleOf(file) }
}
const modules = (root: CallNode) => Object.fromEntries(attribute(root, locate).modules)

t.test('time belongs to the module of the function that spent it', async (t) => {
  const found = attribute(
    node(
      '(root)',
      '',
      0,
      node(
        'run',
        'file:///x/nodes/host/shard.ts',
        2,
        node('decide', 'file:///x/actors/runs/a.ts', 3),
      ),
    ),
    locate,
  )
  t.strictSame(Object.fromEntries(found.modules), { 'shard host': 2, 'run actor': 3 })
  t.strictSame(Object.fromEntries(found.functions), {
    'nodes/host/shard.ts run': 2,
    'actors/runs/a.ts decide': 3,
  })
  t.equal(found.total, 5)
})

t.test('native functions and helpers of Node.js belong to their caller', async (t) => {
  const codec = 'file:///x/nodes/host/memory/codec.ts'
  const root = node(
    '(root)',
    '',
    0,
    node(
      'encodeEntry',
      codec,
      1,
      node('stringify', '', 10, node('toJSON', 'file:///x/views/store.ts', 100)),
      node('from', 'node:buffer', 1000, node('copy', '', 10_000)),
    ),
  )
  t.strictSame(modules(root), { 'shard host: codec': 11_011, 'views: store': 100 })
  const { functions } = attribute(root, locate)
  t.equal(functions.get('nodes/host/memory/codec.ts encodeEntry → stringify'), 10)
  t.equal(functions.get('node:buffer from → copy'), 10_000)
})

t.test('idle time is not counted, and garbage collection is a module', async (t) => {
  const found = attribute(
    node(
      '(root)',
      '',
      0,
      node('(idle)', '', 100),
      node('(garbage collector)', '', 5),
      node('(program)', '', 7),
    ),
    locate,
  )
  t.strictSame(Object.fromEntries(found.modules), {
    'garbage collection': 5,
    'V8 and native code without a caller': 7,
  })
  t.equal(found.total, 12)
})

t.test('a function without a name is named by its line in the sources', async (t) => {
  const root = node('(root)', '', 0, node('', 'file:///x/nodes/host/shard.ts', 1))
  const at = (line?: number) =>
    [
      ...attribute(root, (one) => ({
        ...locate(one),
        ...(line !== undefined && { line }),
      })).functions.keys(),
    ].at(0)
  t.equal(at(), 'nodes/host/shard.ts line 7')
  t.equal(at(42), 'nodes/host/shard.ts line 42')
})

t.test('the sum of all modules and of all functions is the total', async () => {
  const { tree } = fc.letrec<{ tree: CallNode }>((tie) => ({
    tree: fc.record({
      frame: fc
        .tuple(
          fc.constantFrom('a', 'b', '', '(idle)', '(program)', '(garbage collector)'),
          fc.constantFrom(
            '',
            'node:net',
            'node:buffer',
            'file:///x/actors/jobs/queue.ts',
            'file:///x/node_modules/pino/pino.js',
          ),
        )
        .map(([name, url]) => frame(name, url)),
      weight: fc.nat(1000),
      children: fc.oneof(
        { maxDepth: 4 },
        fc.constant([] as CallNode[]),
        fc.array(tie('tree'), { maxLength: 3 }),
      ),
    }),
  }))
  fc.assert(
    fc.property(tree, (child) => {
      const { modules, functions, total } = attribute(node('(root)', '', 0, child), locate)
      const sum = (sums: ReadonlyMap<string, number>) =>
        [...sums.values()].reduce((a, b) => a + b, 0)
      return sum(modules) === total && sum(functions) === total
    }),
  )
})

t.test('the time of a sample lasts until the next one', async (t) => {
  const root = callsOf({
    nodes: [
      { id: 1, callFrame: frame('(root)'), children: [2, 3] },
      { id: 2, callFrame: frame('first') },
      { id: 3, callFrame: frame('second') },
    ],
    samples: [2, 3, 3],
    timeDeltas: [1000, 10, 20],
  })
  t.strictSame(
    root.children.map(({ frame, weight }) => [frame.functionName, weight]),
    [
      ['first', 10],
      ['second', 20],
    ],
  )
})

t.test('an allocation profile is weighted with bytes', async (t) => {
  const root = allocationsOf({
    head: {
      callFrame: frame('(root)'),
      selfSize: 0,
      children: [
        { callFrame: frame('make', 'file:///x/protocol/patch.ts'), selfSize: 64, children: [] },
      ],
    },
  })
  t.strictSame(modules(root), { 'patches of records': 64 })
})

t.test(
  'sources are named by their path in the tree, by package, or by module of Node',
  async (t) => {
    const names: Readonly<Record<string, string>> = {
      '/work/tree/nodes/host/shard.ts': 'nodes/host/shard.ts',
      '../../../gateway/http/respond.ts': 'gateway/http/respond.ts',
      'file:///x/views/log-thread.mjs': 'views/log-thread.mjs',
      '/x/node_modules/@nats-io/nats-core/lib/client/x.js': 'package:@nats-io/nats-core',
      '/x/node_modules/a/node_modules/b/actors/x.js': 'package:b',
      'node:internal/timers': 'node:internal/timers',
      '': '',
    }
    for (const [source, name] of Object.entries(names)) t.equal(fileOf(source), name, source)
  },
)

t.test('the longest matching path determines the module', async (t) => {
  const names: Readonly<Record<string, string | undefined>> = {
    'nodes/host/memory/codec.ts': 'shard host: codec',
    'nodes/host/memory/actor-cache.ts': 'shard host: actor cache',
    'nodes/host/mailbox.ts': 'shard host',
    'package:@nats-io/jetstream': 'NATS client',
    'package:some-other': 'other packages',
    'node:net': 'Node.js: sockets',
    'node:buffer': undefined,
    'gateway/maybe-promise.ts': undefined,
    '': undefined,
  }
  for (const [file, module] of Object.entries(names)) t.equal(moduleOf(file), module, file)
})
