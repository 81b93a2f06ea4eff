/**
 * Checks whether requests would be served. This node must be connected to NATS and have a fresh
 * lease. The journals, the stored state and the views must answer, and every shard must have a live
 * owner. The views must have reached the end of their journals, unless live nodes accept no writes:
 * a damaged entry also stops the views, and is reported as the reason why writes are stopped.
 */
import { names, subjects } from '../../protocol/subjects.ts'
import type { ClusterParts } from './cluster.ts'

/** Timeout of each check in milliseconds. */
const CHECK_TIMEOUT_MS = 2000
/**
 * Milliseconds for which a part that all gateways share may fail its check: a journal, the state, a
 * view, or the owner of a shard. While a shard, a view or the leader of a stream moves, and while
 * the servers are overloaded, requests wait. All gateways notice this at the same time. If all of
 * them then reported that they are not ready, a load balancer would have no gateway left.
 */
const MAX_FAILING_MS = 6000

const within = async <T>(check: Promise<T>): Promise<T> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, fail) => {
    timer = setTimeout(() => fail(new Error('late')), CHECK_TIMEOUT_MS)
  })
  return Promise.race([check, late]).finally(() => clearTimeout(timer))
}

/** Creates a check that returns a short description of each part that is not usable. */
export function readiness({
  nats,
  membership,
  cluster,
  journal,
  bus,
  partitions,
  shards,
}: ClusterParts): () => Promise<readonly string[]> {
  const patient = patience()
  return async () => {
    if (!nats.connected()) return ['nats: not connected']
    const faults: string[] = []
    if (!membership.fresh()) faults.push('membership: the lease of this node is stale')
    const look = async (what: string, check: () => Promise<unknown>) => {
      let fault: string | undefined
      try {
        if ((await within(check())) === false) fault = what
      } catch (error) {
        fault = `${what} (${error instanceof Error ? error.message : String(error)})`
      }
      if (!patient(what, fault === undefined) && fault !== undefined) faults.push(fault)
    }
    const fresh = membership.stops().length > 0 ? { fresh: 0 } : {}
    const checks: Promise<void>[] = []
    for (let p = 0; p < partitions; p++) {
      checks.push(look(`journal ${p}`, () => journal.position(p)))
      checks.push(
        look(`state ${p}`, () =>
          nats.manager.streams.info(nats.space.stream(`KV_${names.state(p)}`)),
        ),
      )
      const question = { name: 'locate', project: '', input: { run_id: '' }, ...fresh }
      checks.push(
        look(
          `view ${p}`,
          async () =>
            typeof (await bus.request(subjects.view(p), question, CHECK_TIMEOUT_MS)) === 'object',
        ),
      )
    }
    checks.push(
      look('shards without an owner', async () => {
        const live = new Set(membership.members('shards').map(({ id }) => id))
        const owners = (await cluster.list('shard.')).filter(({ value }) =>
          live.has((JSON.parse(value) as { node: string }).node),
        )
        return owners.length >= partitions * shards
      }),
    )
    await Promise.all(checks)
    return faults
  }
}

/**
 * Creates a function that decides whether a part is acceptable: it is present, or has been absent
 * for less than `MAX_FAILING_MS` since it was last present.
 */
function patience(): (what: string, present: boolean) => boolean {
  /** Time at which each part went missing, by name; undefined while the part is present. */
  const missing = new Map<string, number | undefined>()
  return (what, present) => {
    if (!present && !missing.has(what)) return false
    const since = present ? undefined : (missing.get(what) ?? performance.now())
    missing.set(what, since)
    return since === undefined || performance.now() - since < MAX_FAILING_MS
  }
}
