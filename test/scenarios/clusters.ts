/** NATS servers for scenarios: one, or several that form a cluster. */
import { join } from 'node:path'
import { findServer } from '../../nodes/nats/install.ts'
import { freePort, startServer, type Server } from '../../nodes/nats/server.ts'

/** Start so many servers with folders of their own under `data`. */
export async function natsServers(data: string, count: number): Promise<Server[]> {
  const { path } = await findServer(process.env)
  const routes = await Promise.all(Array.from({ length: count }, () => freePort()))
  return Promise.all(
    routes.map((port, i) =>
      startServer({
        binary: path,
        data: join(data, `nats-${i}`),
        port: 0,
        sync: '2m',
        name: `n${i}`,
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
