/** The settings of `baton cluster`: those that reach its nodes, and those that it does not accept. */
import t from 'tap'
import {
  type ClusterConfig,
  type ClusterNode,
  clusterAccepts,
  nodeSettings,
  readClusterConfig,
} from '../../../nodes/config/cluster.ts'
import { settingsTable } from '../../../nodes/config.ts'

type Env = Record<string, string>
const read = (env: Env, ...argv: string[]): ClusterConfig => {
  const found = readClusterConfig(env, argv)
  if ('faults' in found) throw new Error(found.faults.join('\n'))
  return found
}
const faults = (env: Env, ...argv: string[]): readonly string[] => {
  const found = readClusterConfig(env, argv)
  return 'faults' in found ? found.faults : []
}

t.test('every accepted flag reaches the nodes as its variable', async (t) => {
  const { variables, config } = read(
    { BATON_BRAND: 'Other', BATON_CORS: 'https://example.org' },
    ...['--rate-key', '7', '--brand=Acme', '--anonymous-worker', '--nats-prefix', 'acme'],
  )
  t.match(variables, {
    BATON_RATE_KEY: '7',
    BATON_BRAND: 'Acme',
    BATON_ANONYMOUS_WORKER: 'on',
    BATON_NATS_PREFIX: 'acme',
  })
  t.notOk('BATON_CORS' in variables, 'nodes inherit the variables of this process')
  t.match(config, { brand: 'Acme', rate: { key: 7 } })
})

t.test('a cluster stops without a drain and logs warnings, unless set otherwise', async (t) => {
  t.match(read({}).variables, { BATON_DRAIN: '0', BATON_LOG_LEVEL: 'warn' })
  t.match(read({}, '--drain', '3', '--log-level', 'info').variables, {
    BATON_DRAIN: '3',
    BATON_LOG_LEVEL: 'info',
  })
  const { variables } = read({ BATON_DRAIN: '4', BATON_LOG_LEVEL: 'debug' })
  t.notOk('BATON_DRAIN' in variables)
  t.notOk('BATON_LOG_LEVEL' in variables)
})

t.test('a flag that has no meaning for a cluster is refused with the reason', async (t) => {
  t.strictSame(faults({}, '--roles', 'gateway', '--replicas', '3', '--port', '9000'), [
    '--roles cannot be used with baton cluster: the cluster starts nodes for all roles',
    '--replicas cannot be used with baton cluster: ' +
      'the cluster stores three replicas of each stream',
  ])
  for (const flag of ['--nats', '--nats-port', '--nats-user', '--nats-max-store', '--node-id'])
    t.match(faults({}, flag, '1'), [new RegExp(`^${flag} cannot be used with baton cluster: `)])
  t.match(faults({}, '--no-such-flag', '1'), [/^--no-such-flag is not a setting/])
})

t.test('the refused flags are exactly those that the help omits', async (t) => {
  for (const { name, flag } of settingsTable())
    t.equal(
      faults({}, flag, 'x').some((fault) => fault.includes('cannot be used')),
      !clusterAccepts(name),
      flag,
    )
})

t.test('a variable that has no meaning for a cluster is ignored with a remark', async (t) => {
  const { variables, remarks } = read({ BATON_REPLICAS: '3', BATON_NATS_USER: 'a' })
  t.match(variables, { BATON_REPLICAS: '', BATON_NATS_USER: '' })
  t.match(remarks, [/^BATON_NATS_USER is ignored: /, /^BATON_REPLICAS is ignored: /])
})

t.test('nodes that listen on the same kind of port use consecutive ports', async (t) => {
  const { config } = read(
    { BATON_INBOX_DOMAIN: 'example.org' },
    ...['--port', '9000', '--status-port', '9100', '--smtp-port', '9200'],
  )
  const nodes: readonly ClusterNode[] = [
    ...(['shards-1', 'shards-2', 'views-1', 'gateway-1', 'gateway-2'] as const),
  ]
  const of = (name: string) => nodes.map((node) => nodeSettings(config, node)[name])
  t.strictSame(of('BATON_PORT'), ['0', '0', '0', '9000', '9001'])
  t.strictSame(of('BATON_STATUS_PORT'), ['9100', '9101', '9102', '9103', '9104'])
  t.strictSame(of('BATON_SMTP_PORT').slice(3), ['9200', '9201'])
  t.strictSame(nodeSettings(read({}, '--status-port', '0').config, 'views-1'), {
    BATON_ROLES: 'views,executor',
    BATON_PORT: '0',
    BATON_STATUS_PORT: '0',
  })
})

t.test('a port without enough following ports is refused', async (t) => {
  t.strictSame(faults({}, '--port', '65535'), [
    '--port is 65535: it must be at most 65534, ' +
      'because 2 nodes of the cluster use this port and the following ones',
  ])
  t.strictSame(faults({}, '--port', '65534'), [])
  t.match(faults({ BATON_STATUS_PORT: '65532' }), [/^BATON_STATUS_PORT is 65532: .* 65531, /])
})
