/**
 * Hosts as separate processes: a host killed while its workers run, and a host that does not run as
 * root.
 */
import { spawn } from 'node:child_process'
import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { isolationKinds } from '../../../../nodes/hosts/local/isolation.ts'
import { dataFolder, limits, PROJECT, processesWith, skipped, stage, until } from './stage.ts'

const program = fileURLToPath(new URL('./host-process.ts', import.meta.url))
const loader = import.meta.resolve('@oxc-node/core/register')
const host = (...args: readonly string[]) => {
  const child = spawn(process.execPath, [`--import=${loader}`, program, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines: string[] = []
  let heard = () => {}
  let text = ''
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString()
    lines.splice(0, lines.length, ...text.split('\n').slice(0, -1))
    heard()
  })
  child.once('exit', () => heard())
  /** Resolves with the output line at an index, or with undefined if the process ends first. */
  const line = async (index: number): Promise<string | undefined> => {
    while (lines.length <= index && child.exitCode === null && child.signalCode === null)
      await new Promise<void>((done) => {
        heard = done
      })
    return lines[index]
  }
  const exited = new Promise<void>((done) => child.once('exit', () => done()))
  return { child, line, exited }
}

for (const kind of isolationKinds)
  t.test(`the host is killed: ${kind}`, { skip: skipped[kind] }, async (t) => {
    const data = dataFolder(t)
    const options = { data, limits, unsafe: true, kinds: [kind] }
    const mark = `10001${isolationKinds.indexOf(kind)}0`
    const { child, line, exited } = host(
      JSON.stringify(options),
      `trap "" TERM; echo kept >file; setsid sleep ${mark} & while :; do sleep ${mark}; done`,
    )
    t.teardown(() => void child.kill('SIGKILL'))
    if (!t.equal(await line(0), 'started')) return
    await until(() => processesWith('sleep', mark).length > 0)
    child.kill('SIGKILL')
    await exited
    const { provider, start, exitOf, log } = await stage(t, kind, { data })
    t.strictSame(processesWith(mark), [])
    t.strictSame(await provider.inspect(), [{ project: PROJECT, environment_id: 'env_1' }])
    await start('env_1', 'cat file', { generation: 2 })
    t.match(await exitOf('env_1', 2), { idle: true })
    t.equal(await log('env_1'), 'kept\n')
  })

const NOBODY = 65_534
t.test('a host that is not root', { skip: skipped.sandbox || skipped.user }, async (t) => {
  // The default folder of a test is private to root, so this host could not use it.
  const data = mkdtempSync('/tmp/baton-local-')
  t.teardown(() => rmSync(data, { recursive: true, force: true }))
  chownSync(data, NOBODY, NOBODY)
  const script =
    'id -u; pwd; echo x >file; ls /proc | grep -c "^[0-9]"; ' +
    `ls ${data} 2>/dev/null; cat /etc/shadow 2>/dev/null; ` +
    'for f in / /etc /dev /run /usr; do touch $f/x 2>/dev/null && echo WROTE $f; done; ' +
    'unshare --user true 2>&1; grep -E "^(CapEff|NoNewPrivs|Seccomp):" /proc/self/status'
  const options = { data, limits, unsafe: false, kinds: ['sandbox'] }
  const { line } = host(JSON.stringify(options), script, String(NOBODY))
  const first = await line(0)
  t.equal(first, 'started')
  if (first !== 'started') return
  const ended = JSON.parse((await line(1)) ?? '{}')
  t.match(ended, { exit: { idle: true }, left: [] })
  t.match(ended.isolation, /sandbox \(bubblewrap\) with a user namespace and a seccomp filter/)
  const [uid, folder, processes, ...rest] = ended.stdout.split('\n')
  t.equal(uid, '1000')
  t.equal(folder, '/workspace')
  t.ok(Number(processes) < 10, `${processes} processes are visible`)
  t.match(
    rest.join('\n'),
    /^unshare: .*not permitted\nCapEff:\s+0+\nNoNewPrivs:\s+1\nSeccomp:\s+2\n$/,
  )
  const plain = host(
    JSON.stringify({ ...options, kinds: ['user', 'none'], data: join(data, 'other') }),
    script,
    String(NOBODY),
  )
  t.match(await plain.line(0), /only a host that runs as root can use other users; plain processes/)
})
