/** `baton cluster` when the port of a gateway is in use. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { programArguments } from '../../../nodes/commands/child.ts'

const data = mkdtempSync(join(tmpdir(), 'baton-cluster-'))
const holder = createServer()
await new Promise<void>((listening) => holder.listen(0, '127.0.0.1', listening))
const { port } = holder.address() as AddressInfo
t.teardown(() => {
  holder.close()
  rmSync(data, { recursive: true, force: true })
})

t.test('the cluster stops with one sentence and the exit code 1', async (t) => {
  const args = [...programArguments(), 'cluster', '--port', String(port), '--data', data]
  const cluster = spawn(process.execPath, args, {
    env: { ...process.env, BATON_LOG_LEVEL: 'silent' },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  let printed = ''
  cluster.stderr?.setEncoding('utf8').on('data', (text: string) => {
    printed += text
  })
  const [code] = await once(cluster, 'close')
  t.equal(code, 1)
  t.match(printed, /^The cluster did not start: gateway-1 did not start \(1\)\./m)
  t.match(printed, `Port ${port} of 127.0.0.1 is in use`)
  t.notMatch(printed, /^ +at /m, 'no stack trace')
})
