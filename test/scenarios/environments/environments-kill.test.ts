/**
 * Kills hosts, workers and the owner of all shards while 100 jobs run in environments. Each command
 * writes a line to a file in its workspace when it begins and when it ends. The line contains the
 * job and a checksum of the worker's credential, which changes with every start.
 *
 * Invariants: every run ends, and it fails only if it may not be repeated. The command of a
 * completed run ran to its end. The command of a run that may not be repeated began at most once.
 * In each workspace, no worker wrote anything after a later worker had begun. After the
 * environments are destroyed, none of their processes or folders remain.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { client } from '../../../client/client.ts'
import { kill, MARKER, processesOf } from '../../../nodes/hosts/local/processes.ts'
import { portsFor, processes } from '../support/processes.ts'
import { hasty } from '../support/sockets.ts'

const JOBS = 100
const ENVIRONMENTS = 4
/** Whether run `n` may be repeated. One third of the runs may not. */
const repeats = (n: number): boolean => n % 3 !== 0
const ended: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled'])

t.setTimeout(280_000)
const ports = await portsFor(2)
const url = ports.map((port) => `http://127.0.0.1:${port}`)
const it = await processes({
  ...hasty,
  BATON_SHARDS: '2',
  BATON_GATEWAY_URL: String(url[0]),
  BATON_UNSAFE_LOCAL: 'on',
  // The default of 30 s may be too short, because processes start slowly while other tests run.
  BATON_ENVIRONMENT_WAKE: '2m',
})
t.teardown(() => it.stop())
const owner = await it.node('shards-0', 'shards')
const [, other, ...hosts] = await Promise.all([
  it.node('gateway-0', 'gateway,views,executor', ports[0]),
  it.node('gateway-1', 'gateway', ports[1]),
  it.node('host-0', 'hosts'),
  it.node('host-1', 'hosts'),
])
const at = client({ url, key: it.key, project: 'default', tries: 30 })

/**
 * Calls `look` repeatedly until `holds` accepts its result, and returns the result.
 * @param every milliseconds between two calls.
 * @throws {Error} after two minutes.
 */
async function until<T>(
  look: () => Promise<T>,
  holds: (seen: T) => boolean,
  what: string,
  every = 100,
) {
  for (const since = Date.now(); ; await new Promise((resolve) => setTimeout(resolve, every))) {
    const found = await look()
    if (holds(found)) return found
    if (Date.now() - since > 120_000)
      throw new Error(`${what}: not within two minutes; last seen: ${JSON.stringify(found)}`)
  }
}

/**
 * Returns the ids of the environment processes of both hosts in ascending order, so the processes
 * of the two hosts are interleaved. Processes of other hosts on this machine, such as those of
 * other tests, have other markers and are not included.
 */
async function workerProcesses(): Promise<number[]> {
  const found = ['host-0', 'host-1'].map((name) => {
    const place = readFileSync(join(it.folder(name), 'environments/place'), 'utf8').trim()
    if (place === '') throw new Error(`${name} has no place`)
    return processesOf({ marker: `${MARKER}=local/${place}/` })
  })
  return (await Promise.all(found)).flat().sort((a, b) => a - b)
}

/** Returns a command that writes a line at its beginning and at its end, 1 s later. */
const command = (key: string): string =>
  `w=$(printf %s "$SERVICE_API_KEY" | cksum | cut -d' ' -f1); ` +
  `echo "begin ${key} $w" >> log; sleep 1; echo "end ${key} $w" >> log`
const spec = (environment_id: string, key: string, n: number) => ({
  steps: [
    {
      kind: 'action' as const,
      ...(repeats(n) && { retry: { max_attempts: 6 } }),
      config: {
        action_name: 'environment.bash',
        environment_id,
        parameters: { command: command(key) },
      },
    },
  ],
})

t.test('processes are killed while jobs run in environments', async (t) => {
  const environments = await Promise.all(
    Array.from({ length: ENVIRONMENTS }, (_, n) => at.environment.create({ name: `box-${n}` })),
  )
  const ids = environments.map(({ id }) => id)
  const placeOf = async (id: string) =>
    (await at.environment.get({ environment_id: id, include: ['place'] })).place
  await until(
    () => Promise.all(ids.map(placeOf)),
    (places) => places.every((place) => place !== undefined),
    'places of all environments',
  )
  const runs = await Promise.all(
    Array.from({ length: JOBS }, async (_, n) => {
      const { id } = await at.run.start({
        spec: spec(String(ids[n % ids.length]), `k${n}`, n),
        idempotency_key: `job-${n}`,
      })
      return id
    }),
  )
  const look = async (): Promise<number> => {
    const { items } = await at.run.list({ limit: JOBS })
    return items.filter(({ status }) => ended.has(status)).length
  }
  const some = (count: number) => until(look, (done) => done >= count, `${count} ended runs`, 200)

  await some(8)
  const workers = await workerProcesses()
  t.ok(workers.length > 0, 'workers are found')
  for (const pid of workers.slice(0, Math.ceil(workers.length / 2))) kill(pid)
  await some(25)
  await hosts[0]?.kill()
  hosts[0] = await it.node('host-0', 'hosts')
  await some(45)
  await it.node('shards-1', 'shards')
  await owner.kill()
  await some(60)
  await hosts[1]?.kill()
  await other.kill()
  hosts[1] = await it.node('host-1', 'hosts')
  await it.node('gateway-2', 'gateway', ports[1])
  await some(JOBS)

  const lines = new Map<string, string[]>()
  for (const environment_id of ids) {
    const read = await at.action.invoke({
      action_name: 'environment.files.read',
      environment_id,
      input: { path: 'log', max_bytes: 128_000 },
      timeout_seconds: 60,
    })
    const text = String(read.output?.['content'] ?? '')
    lines.set(environment_id, text.split('\n').filter(Boolean))
  }
  const all = [...lines.values()].flat().map((line) => line.split(' '))
  const times = (what: string, key: string) =>
    all.filter(([one, of]) => one === what && of === key).length
  let failed = 0
  for (const [n, id] of runs.entries()) {
    const { status, error_message } = await at.run.get({ id })
    const began = times('begin', `k${n}`)
    if (status === 'completed') {
      if (times('end', `k${n}`) < 1) t.fail(`run ${n} is completed, but its command did not end`)
    } else {
      failed++
      if (status !== 'failed' || repeats(n)) t.fail(`run ${n} is ${status}: ${error_message}`)
    }
    if (!repeats(n) && began > 1)
      t.fail(
        `the command of run ${n} began ${began} times: ${all.filter(([, of]) => of === `k${n}`).join('; ')}`,
      )
  }
  t.comment(`${failed} runs failed, which lost their worker and may not be repeated`)
  for (const [id, written] of lines) {
    const workers = written.map((line) => line.split(' ')[2] ?? '')
    const order = workers.filter((worker, i) => worker !== workers[i - 1])
    t.equal(new Set(order).size, order.length, `one worker after the other in ${id}`)
  }
  t.ok(
    [...lines.values()].some((written) => new Set(written.map((l) => l.split(' ')[2])).size > 1),
    'workers were replaced',
  )

  for (const environment_id of ids) await at.environment.delete({ environment_id })
  await until(
    () => Promise.all(ids.map((environment_id) => at.environment.get({ environment_id }))),
    (found) => found.every(({ status }) => status === 'destroyed'),
    'the end of all environments',
  )
  t.same(await workerProcesses(), [], 'no process is left')
  for (const name of ['host-0', 'host-1']) {
    const folder = join(it.folder(name), 'environments')
    const left = existsSync(folder)
      ? readdirSync(folder).filter((one) => one.startsWith('env_'))
      : []
    t.same(left, [], `no folder is left on ${name}`)
  }
})
