/**
 * A short run of chaos with a fixed seed: what was promised holds, however slow the machine. How long clients wait is left
 * to `npm run chaos`, which has the machine for itself.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { findServer } from '../nodes/nats/install.ts'
import { loopback } from './chaos/net.ts'
import { runChaos } from './chaos/run.ts'

t.setTimeout(240_000)
t.test('a cluster whose processes are killed and paused under load keeps what it promised', { timeout: 240_000 }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'baton-chaos-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const { path: binary } = await findServer(process.env)
  const { history, violations } = await runChaos({ seconds: 15, rate: 20, seed: 1, net: loopback(), folder, binary, signal: new AbortController().signal, say: (line) => t.comment(line) })
  t.ok(history.strikes.length > 0, 'somebody was struck')
  t.ok(history.starts.length > 100 && history.starts.every((start) => start.acknowledged), 'every start was acknowledged')
  t.strictSame(violations.filter(({ kind }) => kind !== 'slow'), [])
})
