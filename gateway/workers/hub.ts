/**
 * Manages all worker connections of a gateway: opens and closes them, handles messages from shard
 * owners, and checks credentials again. The hub does not access sockets; `mount.ts` forwards their
 * events.
 */

import type { Code } from '../../protocol/errors.ts'
import type { GatewayMessage } from '../../protocol/workers/messages.ts'
import { closeCodes } from '../../protocol/workers/socket.ts'
import type { MaybePromise } from '../maybe-promise.ts'
import type { World } from '../ports.ts'
import { atMost, every, type WorkInProgress } from '../timing.ts'
import { Connection, type Pipe } from './connection.ts'
import { handleFrame } from './dispatch.ts'
import { type Grant, limits, openWorkerEdge, type Serves } from './edge.ts'
import { receive } from './jobs/assign.ts'
import { dismissClaims } from './jobs/claim.ts'
import { handleCapacityGain, updateSubscriptions } from './jobs/offers.ts'

/** The worker connections of a gateway. */
export interface Hub {
  /** Opens a connection for a new socket with this grant. */
  connect(grant: Grant, pipe: Pipe): Connection
  /**
   * Handles a message to this gateway's mailbox. `ok` is false when the message is for a session
   * that is not connected here, or for a job that the session cannot accept.
   */
  receive(message: GatewayMessage): MaybePromise<{ ok: boolean }>
  /**
   * Checks immediately whether the grants of all connections are still valid, and closes the
   * connections whose grants are not.
   */
  recheck(): Promise<void>
  /** Returns whether the hub is stopping. New sockets must then be refused. */
  stopping(): boolean
  /**
   * Answers open claims without jobs, waits for the commands in progress (at most `limits.stop`),
   * and closes every connection. Then waits for the resulting commands and for the storage of log
   * lines, at most `limits.stop` for each.
   */
  stop(): Promise<void>
}

/**
 * For each refusal of a recheck that closes the connection: the close code, and the reason that is
 * sent if the refusal contains no message. Other refusals do not affect the connection.
 */
const verdicts: { readonly [C in Code]?: readonly [code: number, reason: string] } = {
  unauthorized: [closeCodes.invalid_actor, 'the credential is no longer valid'],
  permission_denied: [closeCodes.forbidden, 'the permission to work in this project was revoked'],
  forbidden: [closeCodes.forbidden, 'this credential has no access to the project'],
  not_found: [closeCodes.project_deleted, 'the project was deleted'],
}

/**
 * Creates a hub without connections. It checks credentials again every `limits.recheck` until it is
 * stopped.
 * @param serves determines which jobs the service executes itself; by default none.
 */
export function openHub(world: World, serves: Serves = () => ({ byService: false })): Hub {
  const edge = openWorkerEdge(world, serves)
  /**
   * The grants in use, each with its number of connections, by key. Connections with the same
   * access share one grant.
   */
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
        // The agent may have become active or inactive, which changes whether its sessions accept
        // jobs.
        else if (group[0]?.grant.asleep)
          for (const { session } of group) if (session) handleCapacityGain(edge, session)
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
  const stopRechecking = every(world, limits.recheck, () => {
    edge.answers.sweep()
    void recheck()
  })

  return {
    connect(grant, pipe) {
      const connection: Connection = new Connection(
        edge,
        share(grant),
        pipe,
        (from, incoming) => handleFrame(edge, from, incoming),
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
      stopRechecking()
      edge.stopping = true
      for (const { session } of edge.connections) {
        if (!session) continue
        dismissClaims(edge, session)
        updateSubscriptions(edge, session)
      }
      await quiet(world, edge.pending)
      for (const connection of [...edge.connections])
        connection.close(closeCodes.restart, 'the gateway restarts')
      await quiet(world, edge.pending)
      edge.previews.stop()
      await atMost(world, limits.stop, edge.logs.stop())
    },
  }
}

function expel(connection: Connection, code: number, reason: string): void {
  if (code === closeCodes.invalid_actor) connection.fail('invalid_actor', reason)
  connection.close(code, reason)
}

/** Resolves when the commands in progress have ended, but no later than after `limits.stop`. */
const quiet = (world: World, pending: WorkInProgress): Promise<unknown> =>
  atMost(world, limits.stop, pending.settled())
