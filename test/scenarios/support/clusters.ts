/** NATS servers for scenarios: one, or several that form a cluster. */
import { join } from 'node:path'
import type { Access } from '../../../nodes/nats/server/access.ts'
import { createIdentity } from '../../../nodes/nats/server/identity.ts'
import { findServer } from '../../../nodes/nats/server/install.ts'
import { freePort, startServer, type Server } from '../../../nodes/nats/server/server.ts'

/** How servers of one cluster are reached. */
export const accessTo = (servers: readonly Server[]): Access => ({
  ...servers[0]?.access,
  servers: servers.map(({ url }) => url),
})
/** Settings of a node process that is to reach them. */
export const settingsFor = (servers: readonly Server[]): Record<string, string> => ({
  ...servers[0]?.settings,
  BATON_NATS: servers.map(({ url }) => url).join(','),
})

/**
 * Start so many servers with folders of their own under `data`.
 * @param authorization who may connect, as configuration of nats-server; absent: the user of a random key pair.
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
