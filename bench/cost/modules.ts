/** Maps source files, packages and parts of Node.js to the modules that the cost tables show. */

/**
 * Modules by path prefix. The longest match wins. An empty name means that a frame belongs to the
 * module of its caller.
 */
const MODULES: Readonly<Record<string, string>> = {
  'nodes/host/': 'shard host',
  'nodes/host/memory/codec': 'shard host: codec',
  'nodes/host/memory/compact': 'shard host: codec',
  'nodes/host/memory/': 'shard host: actor cache',
  'nodes/host/durability/': 'shard host: commits and checkpoints',
  'nodes/host/effects/': 'shard host: effects',
  'nodes/host/effects/offers': 'shard host: offers',
  'nodes/host/cluster/': 'cluster membership',
  'nodes/nats/': 'NATS adapters',
  'nodes/nats/request-mux': 'NATS adapters: requests',
  'nodes/nats/journal/': 'NATS adapters: journal',
  'nodes/nats/bus': 'NATS adapters: bus',
  'nodes/nats/envelope': 'NATS adapters: bus',
  'nodes/roles/view-worker': 'hand-over between the main thread and views',
  'nodes/roles/thread-rpc': 'hand-over between the main thread and views',
  'nodes/roles/view-thread': 'hand-over between the main thread and views',
  'nodes/roles/view.ts': 'views: queries and follower',
  'nodes/roles/': 'other roles',
  'nodes/executor/': 'executor',
  'nodes/observe/': 'metrics and logs',
  'nodes/system': 'clock and random numbers',
  'nodes/': 'other parts of nodes/',
  'actors/runs/': 'run actor',
  'actors/jobs/': 'queue actor',
  'actors/': 'other actors',
  'gateway/http/': 'gateway: HTTP',
  'gateway/server': 'gateway: HTTP',
  'gateway/serve': 'gateway: HTTP',
  'gateway/edge': 'gateway: HTTP',
  'gateway/call': 'gateway: HTTP',
  'gateway/workers/': 'gateway: worker sockets',
  'gateway/workers/jobs/': 'gateway: offers and claims of jobs',
  'gateway/streams/': 'gateway: event streams',
  'gateway/auth/': 'gateway: authentication and admission',
  'gateway/admission': 'gateway: authentication and admission',
  'gateway/guard': 'gateway: authentication and admission',
  'gateway/commands/': 'gateway: commands',
  'gateway/command': 'gateway: commands',
  'gateway/prepare': 'gateway: commands',
  'gateway/maybe-promise': '',
  'gateway/timing': '',
  'gateway/': 'other parts of gateway/',
  'protocol/rules/expressions/': 'expressions',
  'protocol/rules/': 'checks of workflows',
  'protocol/patch': 'patches of records',
  'protocol/ids': '',
  'protocol/': 'protocol',
  'views/store': 'views: store',
  'views/files/': 'views: store',
  'views/view.ts': 'views: collection of changes',
  'views/define-view': 'views: collection of changes',
  'views/records': 'views: collection of changes',
  'views/follow': 'views: collection of changes',
  'views/log-thread': 'views: store',
  'views/page': 'views: queries and follower',
  'views/tables/runs/': 'views: runs',
  'views/tables/runs/feed': 'views: feed',
  'views/tables/runs/tail': 'views: tail of the feed',
  'views/tables/runs/timeline': 'views: timeline',
  'views/tables/jobs/': 'views: jobs',
  'views/tables/': 'views: other tables',
  'bench/': 'probes of the measurement',
  'client/': 'client',
  'package:better-sqlite3': 'views: store',
  'package:@nats-io/': 'NATS client',
  'package:typebox': 'validation',
  'package:@marcbachmann/cel-js': 'expressions',
  'package:prom-client': 'metrics and logs',
  'package:pino': 'metrics and logs',
  'package:': 'other packages',
  'node:net': 'Node.js: sockets',
  'node:_http': 'Node.js: sockets',
  'node:stream': 'Node.js: sockets',
  'node:internal/streams/': 'Node.js: sockets',
  'node:internal/stream_base_commons': 'Node.js: sockets',
  'node:internal/process/task_queues': 'Node.js: microtasks and timers',
  'node:internal/timers': 'Node.js: microtasks and timers',
  'node:timers': 'Node.js: microtasks and timers',
  'node:internal/async_hooks': 'Node.js: microtasks and timers',
  'node:internal/source_map/': 'Node.js: source maps and loading of modules',
  'node:internal/modules/': 'Node.js: source maps and loading of modules',
  'node:internal/worker': 'hand-over between the main thread and views',
  'node:internal/per_context/messageport': 'hand-over between the main thread and views',
  'node:': '',
}
const PREFIXES = Object.keys(MODULES).sort((a, b) => b.length - a.length)

/**
 * Returns the module of a file; undefined if its frames belong to the modules of their callers.
 * @param file as `fileOf` returns it; empty for a native function.
 */
export function moduleOf(file: string): string | undefined {
  if (file === '') return undefined
  const prefix = PREFIXES.find((start) => file.startsWith(start))
  const module = prefix === undefined ? 'other files' : MODULES[prefix]
  return module === '' ? undefined : module
}

const PACKAGE = /^.*node_modules\/((?:@[^/]+\/)?[^/]+)/
const SOURCE = /(?:^|\/)((?:nodes|actors|protocol|gateway|views|client|bench)\/.+\.(?:ts|m?js))$/
/**
 * Returns the name of a source for tables: its path in the tree, `package:<name>` or `node:<name>`.
 * @param source URL of a script, or a path in a source map.
 */
export function fileOf(source: string): string {
  if (source.startsWith('node:')) return source
  const name = PACKAGE.exec(source)?.[1]
  if (name !== undefined && name !== '.cache') return `package:${name}`
  return SOURCE.exec(source)?.[1] ?? source
}
