/**
 * Measures calls to a Restate service through the ingress, until their responses arrive. The
 * handler executes the configured number of journaled steps. The server is one process with default
 * settings and a separate data folder. This process hosts the service.
 */

import { createRequire } from 'node:module'
import { join } from 'node:path'
import { endpoint, service } from '@restatedev/restate-sdk'
import { connect } from '@restatedev/restate-sdk-clients'
import { freePort } from '../../nodes/nats/server/server.ts'
import { asked, eventually, folderFor, report, startStore } from '../support/peer.ts'

const { amount, steps } = asked()
const [ingress, admin, fabric, own] = [
  await freePort(),
  await freePort(),
  await freePort(),
  await freePort(),
]
const folder = folderFor()
const platform = createRequire(
  createRequire(import.meta.url).resolve('@restatedev/restate-server/package.json'),
).resolve(`@restatedev/restate-server-${process.platform}-${process.arch}/package.json`)
const server = startStore(join(platform, '..', 'bin', 'restate-server'), [], {
  cwd: folder,
  env: {
    RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
    RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
    RESTATE_BIND_ADDRESS: `127.0.0.1:${fabric}`,
    RESTATE_ADVERTISED_ADDRESS: `http://127.0.0.1:${fabric}`,
    RESTATE_BASE_DIR: folder,
    DO_NOT_TRACK: '1',
  },
})
const executedAt = new Map()
const job = service({
  name: 'Job',
  handlers: {
    run: async (ctx, name) => {
      for (let i = 0; i < steps; i++)
        await ctx.run(`s${i}`, () => {
          if (!executedAt.has(name)) executedAt.set(name, performance.now())
          return { ok: true }
        })
      return { ok: true }
    },
  },
})
await endpoint()
  .bind(job)
  .setLogger(() => {})
  .listen(own)
await eventually(async () => {
  const answer = await fetch(`http://127.0.0.1:${admin}/deployments`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ uri: `http://127.0.0.1:${own}`, force: true }),
  })
  if (!answer.ok) throw new Error(`the deployment was answered ${answer.status}`)
})
const client = connect({ url: `http://127.0.0.1:${ingress}` }).serviceClient({ name: 'Job' })
await eventually(() => client.run('first'))
await report(
  async (name) => {
    await client.run(name)
    const at = executedAt.get(name)
    executedAt.delete(name)
    return at
  },
  amount,
  { server },
)
