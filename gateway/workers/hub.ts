/**
 * All worker connections of a gateway: opening them, the mailbox of the engine, looking after credentials, and the stop.
 * Knows no sockets: `mount.ts` feeds it.
 */
import type { World } from '../ports.ts'
import type { MaybePromise } from '../maybe-promise.ts'
import type { Code } from '../../protocol/errors.ts'
import { closeCodes, type GatewayMessage } from '../../protocol/workers/socket.ts'
import { receive } from './jobs/assign.ts'
import { dismiss } from './jobs/claim.ts'
import { Connection, type Pipe } from './connection.ts'
import { dispatch } from './dispatch.ts'
import { limits, openEdge, type Grant, type Serves } from './edge.ts'
import { gained, settle } from './jobs/offers.ts'

export interface Hub {
  /** A socket was opened for this grant. */
  connect(grant: Grant, pipe: Pipe): Connection
  /** A message of the engine. `ok: false`: not for this gateway. */
  receive(message: GatewayMessage): MaybePromise<{ ok: boolean }>
  /** Look now whether the grants of all connections still hold. */
  recheck(): Promise<void>
  /** Whether the hub is stopping: new sockets are to be turned away. */
  stopping(): boolean
  /** Answer outstanding claims with nothing, let reports under way finish, close every connection. Resolves when all is said. */
  stop(): Promise<void>
}

/** Close code for the refusal that a connection would get now, and the reason unless it has one; other refusals say nothing about its right to be here. */
const verdicts: { readonly [C in Code]?: readonly [code: number, reason: string] } = {
  unauthorized: [closeCodes.invalid_actor, 'the credential is no longer valid'],
  permission_denied: [closeCodes.forbidden, 'the permission to work in this project is gone'],
  forbidden: [closeCodes.forbidden, 'the project is closed to this credential'],
  not_found: [closeCodes.project_deleted, 'the project is gone'],
}

/** A hub without connections. It looks after credentials by itself until it is stopped. @param serves what no worker gets; nothing by default. */
export function openHub(world: World, serves: Serves = () => ({ byService: false })): Hub {
  const edge = openEdge(world, serves)
  /** Grants in use by their key, with how many connections have each: workers that share a credential share what is known of it. */
  const grants = new Map<string, { readonly grant: Grant; users: number }>()
  const share = (grant: Grant): Grant => {
    const used = grants.get(grant.key) ?? { grant, users: 0 }
    grants.set(grant.key, used)
    used.users++
    return used.grant
  }
  const unshare = ({ key }: Grant): void => {
    const used = grants.get(key)
    if (used && --used.users === 0) grants.delete(key)
  }
  let looking: Promise<void> | undefined
  let again = false
  let timer: () => void

  const look = async (): Promise<void> => {
    const groups = new Map<string, Connection[]>()
    for (const connection of edge.connections) {
      const group = groups.get(connection.grant.key)
      if (group) group.push(connection)
      else groups.set(connection.grant.key, [connection])
    }
    await Promise.all(
      [...groups.values()].map(async (group) => {
        const refusal = await group[0]?.grant.recheck().catch(() => undefined)
        const verdict = refusal && verdicts[refusal.refused]
        if (verdict)
          for (const connection of group)
            expel(connection, verdict[0], refusal.message ?? verdict[1])
        // An agent may have become active, or have ceased to be.
        else if (group[0]?.grant.asleep)
          for (const { session } of group) if (session) gained(edge, session)
      }),
    )
  }
  const recheck = (): Promise<void> => {
    again = looking !== undefined
    looking ??= look().finally(() => {
      looking = undefined
      if (again) void recheck()
    })
    return looking
  }
  const tick = () => {
    timer = world.later(limits.recheck, tick)
    edge.answers.sweep()
    void recheck()
  }
  timer = world.later(limits.recheck, tick)

  return {
    connect(grant, pipe) {
      const connection: Connection = new Connection(
        edge,
        share(grant),
        pipe,
        (from, incoming) => dispatch(edge, from, incoming),
        () => {
          edge.connections.delete(connection)
          unshare(connection.grant)
          world.count.open('worker_sockets', -1)
        },
      )
      edge.connections.add(connection)
      world.count.open('worker_sockets', 1)
      return connection
    },
    receive: (message) => (message.type === 'forget' ? { ok: true } : receive(edge, message)),
    recheck,
    stopping: () => edge.stopping,
    async stop() {
      timer()
      edge.stopping = true
      for (const { session } of edge.connections) {
        if (!session) continue
        dismiss(edge, session)
        settle(edge, session)
      }
      await quiet(world, edge.pending)
      for (const connection of [...edge.connections])
        connection.close(closeCodes.restart, 'the gateway restarts')
      await quiet(world, edge.pending)
      edge.previews.stop()
    },
  }
}

function expel(connection: Connection, code: number, reason: string): void {
  if (code === closeCodes.invalid_actor) connection.fail('invalid_actor', reason)
  connection.close(code, reason)
}

/** Resolves when nothing is under way any more, or when it has waited long enough. */
async function quiet(world: World, pending: ReadonlySet<Promise<unknown>>): Promise<void> {
  let cancel = () => {}
  const late = new Promise<void>((resolve) => {
    cancel = world.later(limits.stop, resolve)
  })
  await Promise.race([Promise.allSettled([...pending]), late])
  cancel()
}
