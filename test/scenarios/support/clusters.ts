/** Starts NATS servers for scenarios: one server, or several that form a cluster. */
import { join } from 'node:path'
import type { Access } from '../../../nodes/nats/server/access.ts'
import { createIdentity } from '../../../nodes/nats/server/identity.ts'
import { findServer } from '../../../nodes/nats/server/install.ts'
import { type Server, startServer } from '../../../nodes/nats/server/server.ts'
import { freePort } from '../../support/ports.ts'

export const accessTo = (servers: readonly Server[]): Access => ({
  ...servers[0]?.access,
  servers: servers.map(({ url }) => url),
})
export const settingsFor = (servers: readonly Server[]): Record<string, string> => ({
  ...servers[0]?.settings,
  BATON_NATS: servers.map(({ url }) => url).join(','),
})

/**
 * Starts `count` servers with separate folders below `data`. Several servers form a cluster.
 * @param authorization the authorization block of the nats-server configuration. By default only
 *   the user of a random key pair may connect.
 */
export async function natsServers(
  data: string,
  count: number,
  authorization?: string,
): Promise<Server[]> {
  const { path } = await findServer(process.env)
  const identity = createIdentity()
  const routes = await Promise.all(Array.from({ length: count }, () => freePort()))
  return Promise.all(
    routes.map((port, i) =>
      startServer({
        binary: path,
        data: join(data, `nats-${i}`),
        port: 0,
        sync: '2m',
        identity,
        name: `n${i}`,
        ...(authorization !== undefined && { authorization }),
        ...(count > 1 && {
          cluster: {
            name: 'restored',
            port,
            routes: routes.filter((other) => other !== port).map((other) => `127.0.0.1:${other}`),
          },
        }),
      }),
    ),
  )
}
