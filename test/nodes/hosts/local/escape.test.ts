/**
 * Attempts to escape from a sandbox, with real processes. Each test prints what was refused. Where
 * possible, the same attempt must succeed outside a sandbox, which shows that the attempt itself is
 * valid.
 */
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { refusedCalls } from '../../../../nodes/hosts/local/seccomp.ts'
import { has, limits, MIB, processesWith, skipped, stage, until } from './stage.ts'

const skip = skipped.sandbox
const SECRET = 'seed-of-the-nats-credentials'
/** Runs a script on the host, without isolation. Returns its output. */
const outside = (script: string): string =>
  spawnSync('/bin/sh', ['-c', script], { encoding: 'utf8' }).stdout
const denied = (t: Test, what: string, output: string) =>
  t.comment(`denied: ${what}: ${output.trim().split('\n').slice(0, 4).join(' | ').slice(0, 300)}`)

t.test('files of the host, its secrets and other environments', { skip }, async (t) => {
  const { provision, start, exitOf, log, data } = await stage(t, 'sandbox')
  mkdirSync(join(data, 'nats'))
  const secrets = [join(data, 'nats/client.nk'), join(data, 'root.key')]
  for (const path of secrets) writeFileSync(path, SECRET)
  await provision('env_2')
  const other = join(data, 'environments/env_2/workspace/other')
  writeFileSync(other, SECRET)
  await provision('env_1')
  // This link already exists when the sandbox starts, and leads out of the sandbox.
  symlinkSync(data, join(data, 'environments/env_1/workspace/planted'))
  const paths = [
    ...secrets,
    other,
    ...secrets.map((path) => `/proc/1/root${path}`),
    `../../env_2/workspace/other`,
    `/workspace/../env_2/workspace/other`,
    `/var/worker/../../env_2/workspace/other`,
    '/etc/shadow',
    '/etc/ssh/ssh_host_rsa_key',
    '/root/.bashrc',
    '/proc/kcore',
    '/dev/mem',
    '/dev/vda',
    join(data, 'environments/env_1/control.json'),
  ]
  const script =
    `for p in ${paths.join(' ')}; do cat "$p" 2>/dev/null && echo "READ $p"; ln -s "$p" link; ` +
    'cat link 2>/dev/null && echo "READ link to $p"; rm -f link; done; ls -a / /run; ' +
    `ls ${data} 2>&1; ls /workspace/planted 2>&1; ls /workspace/planted/nats 2>&1; true`
  await t.test('the attempt reads the files outside of a sandbox', async (t) => {
    t.match(outside(script), new RegExp(`${SECRET}READ ${secrets[0]}`))
  })
  await start('env_1', script)
  await exitOf('env_1')
  const output = await log('env_1')
  t.notMatch(output, SECRET)
  t.notMatch(output, 'READ')
  for (const path of [data, '/workspace/planted/nats'])
    t.match(output, `cannot access '${path}': No such file or directory`)
  denied(t, 'data folder, keys, other environments', output.split('\n').slice(-4).join('\n'))
})

t.test('nothing outside of the workspace can be written', { skip }, async (t) => {
  const { run } = await stage(t, 'sandbox')
  const folders =
    '/ /usr /etc /run /run/sockets /var /home /dev /bin /lib /proc /proc/sys/kernel /sys'
  const { output } = await run(
    'env_1',
    `for f in ${folders}; do (echo x >$f/written) 2>/dev/null && echo "WROTE $f"; done; ` +
      '(echo x >/run/inside.mjs) 2>/dev/null && echo WROTE program; ' +
      '(echo x >/proc/sys/kernel/core_pattern) 2>/dev/null && echo WROTE kernel; ' +
      '(echo b >/proc/sysrq-trigger) 2>/dev/null && echo WROTE sysrq; ' +
      'mknod /tmp/disk b 254 0 2>&1; rm -rf /run/sockets/* 2>&1; ls /run/sockets; id -u',
  )
  t.notMatch(output, 'WROTE')
  t.match(output, /mknod: .*not permitted/)
  t.match(output, /gateway.sock\nproxy.sock\n/)
  t.not(output.trim().split('\n').at(-1), '0')
  denied(t, 'writing to the system', output)
})

t.test('processes, variables and credentials of the host', { skip }, async (t) => {
  const { run } = await stage(t, 'sandbox')
  const child = spawn('/bin/sh', ['-c', 'exec sleep 1000010'], { env: { NATS_SECRET: SECRET } })
  t.teardown(() => void child.kill('SIGKILL'))
  process.env['BATON_NATS_PASSWORD'] = SECRET
  t.teardown(() => void delete process.env['BATON_NATS_PASSWORD'])
  const script =
    'cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | tr "\\0" "\\n"; echo; ls -d /proc/[0-9]*; env; ' +
    `kill -0 ${process.pid} 2>&1; kill -9 ${child.pid} 2>&1; ` +
    'ls -l /proc/[0-9]*/fd 2>/dev/null | grep -E "socket:|pipe:|/" | wc -l; true'
  await t.test('the attempt sees them outside of a sandbox', async (t) => {
    t.match(outside('cat /proc/[0-9]*/environ | tr "\\0" "\\n"'), SECRET)
  })
  const { output } = await run('env_1', script)
  t.notMatch(output, SECRET)
  t.notMatch(output, '1000010')
  const processes = output.split('\n').filter((line) => /^\/proc\/\d+$/.test(line))
  t.ok(processes.length <= 6, `it sees ${processes.length} processes`)
  t.match(output, /No such process/)
  t.equal(child.exitCode, null)
  denied(t, 'signals to processes of the host', output.slice(output.lastIndexOf('/bin/sh:')))
})

t.test('variables of a worker are in no arguments on the host', { skip }, async (t) => {
  const { provision, start } = await stage(t, 'sandbox')
  await provision('env_1')
  await start('env_1', 'exec sleep 1000011', { variables: { ACME_API_KEY: 'in-no-argument' } })
  await until(() => processesWith('sleep', '1000011').length > 0)
  t.strictSame(processesWith('in-no-argument'), [])
})

t.test('mounting, tracing and new namespaces', { skip }, async (t) => {
  const { run } = await stage(t, 'sandbox')
  const { output } = await run(
    'env_1',
    'for c in "mount -t tmpfs none /tmp" "umount /proc" "unshare --user --map-root-user true" ' +
      '"unshare --mount true" "unshare --net true" "nsenter -t 1 -m true" "chroot / true" ' +
      '"setpriv --reuid 0 true" "dmesg" "hostname other"; do ' +
      '$c >/tmp/out 2>&1 && echo "DONE $c" || tail -n 1 /tmp/out; done; ' +
      'grep -E "^(Cap|Seccomp:|NoNewPrivs)" /proc/self/status',
  )
  t.notMatch(output, 'DONE')
  t.match(output, /CapPrm:\s+0+\nCapEff:\s+0+\n/)
  t.match(output, /NoNewPrivs:\s+1\nSeccomp:\s+2\n/)
  denied(t, 'privileged commands', output)
})

t.test('system calls that the filter refuses', { skip: skip || perl() }, async (t) => {
  const calls = refusedCalls(process.arch)
  t.ok(Object.keys(calls).length > 30)
  // The first argument is -1, because some calls, such as `unshare`, would succeed with 0. The last
  // calls pass CLONE_NEWUSER | SIGCHLD to clone, and TIOCSTI to ioctl.
  const script = (more: string) =>
    `perl -e 'for (${Object.values(calls).join(',')}) { ` +
    '$! = 0; syscall($_, -1, 0, 0, 0, 0); $n{$_ . q( ) . ($! + 0)} = 1 } ' +
    `print join(qq(\\n), sort keys %n), qq(\\n); ${more}'`
  const numbers = process.arch === 'x64' ? { clone: 56, clone3: 435, ioctl: 16 } : undefined
  const more = numbers
    ? `$! = 0; syscall(${numbers.clone}, 0x10000011, 0, 0, 0, 0); print qq(clone ), $! + 0, qq(\\n); ` +
      `$! = 0; syscall(${numbers.clone3}, 0, 0); print qq(clone3 ), $! + 0, qq(\\n); ` +
      `$! = 0; syscall(${numbers.ioctl}, 0, 0x5412, 0); print qq(TIOCSTI ), $! + 0, qq(\\n);`
    : ''
  const { run } = await stage(t, 'sandbox')
  const { output, errors } = await run('env_1', script(more))
  t.equal(errors, '')
  const EPERM = 1
  const expected = Object.values(calls).map((number) => `${number} ${EPERM}`)
  t.strictSame(
    output.split('\n').filter((line) => /^\d/.test(line)),
    expected.sort(),
    'each call fails with EPERM',
  )
  if (numbers) t.match(output, 'clone 1\nclone3 38\nTIOCSTI 1\n')
  await t.test('without a filter, the user gets other errors', async (t) => {
    const { run } = await stage(t, 'none')
    const names = ['keyctl', 'process_vm_readv', 'setns', 'kcmp'].map((name) => calls[name])
    const { output } = await run('env_1', script(''))
    for (const number of names) t.notMatch(output, new RegExp(`^${number} 1$`, 'm'))
  })
  denied(t, `${expected.length} system calls`, Object.keys(calls).join(' '))
})
function perl(): string | false {
  return !has('perl') && 'perl makes the system calls'
}

t.test('the network', { skip }, async (t) => {
  const server = createServer((_, response) => response.end('INTERNAL'))
  await new Promise<void>((done) => server.listen(0, '0.0.0.0', done))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const { run, gateway_url } = await stage(t, 'sandbox')
  const own = new URL(gateway_url).port
  // The program connects directly, and through the proxy with CONNECT and with an absolute URL.
  const program = `
    const net = require('node:net'), http = require('node:http'), dgram = require('node:dgram')
    const direct = (host, port) => new Promise((done) => {
      const socket = net.connect({ host, port, timeout: 3000 })
      socket.on('connect', () => done('OPEN')).on('error', (e) => done(e.code))
      socket.on('timeout', () => done('timeout'))
    })
    const proxy = (method, path) => new Promise((done) => {
      const request = http.request({ host: '127.0.0.1', port: 18481, method, path, agent: false })
      request.on('connect', (answer, socket) => { socket.destroy(); done(answer.statusCode) })
      request.on('error', (e) => done(e.code))
      request.on('response', (answer) => {
        let text = ''
        answer.on('data', (d) => text += d)
        answer.on('end', () => done(answer.statusCode + ' ' + text.trim()))
      })
      request.end()
    })
    ;(async () => {
      const targets = ['169.254.169.254:80', '10.0.0.1:80', '127.0.0.1:${port}', '127.0.0.1:${own}',
        'localhost:${own}', '[::1]:${port}', '[::ffff:127.0.0.1]:${port}',
        '2130706433:${port}', '0x7f.1:${port}', '0:${port}', 'metadata.google.internal:80',
        '1.1.1.1:53']
      for (const target of targets) {
        const [, host, at] = /^(.*):(\\d+)$/.exec(target)
        console.log('direct', target, await direct(host.replace(/[\\[\\]]/g, ''), Number(at)))
        console.log('connect', target, await proxy('CONNECT', target))
        console.log('get', target, await proxy('GET', 'http://' + target + '/'))
      }
      console.log('file', await proxy('GET', 'file:///etc/passwd'), await proxy('GET', '/'))
      console.log('listed', await proxy('GET', 'http://127.0.0.1:' + process.env.LISTED + '/'))
      console.log('gateway', await (await fetch(process.env.ACME_API_URL + '/v1/x')).text())
      console.log('names', Object.keys(require('node:os').networkInterfaces()).join())
      const socket = dgram.createSocket('udp4')
      socket.send('x', 53, '8.8.8.8', (e) => { console.log('udp', e ? e.code : 'SENT'); socket.close() })
    })()`
  const listed = createServer((_, response) => response.end('LISTED'))
  await new Promise<void>((done) => listed.listen(0, '127.0.0.1', done))
  t.teardown(() => {
    listed.closeAllConnections()
    listed.close()
  })
  const allowed = `127.0.0.1:${(listed.address() as AddressInfo).port}`
  await t.test('the attempt connects outside of a sandbox', async (t) => {
    const connects =
      `require('node:net').connect(${port}).on('connect',` +
      `function(){console.log('OPEN');this.destroy()})`
    t.match(outside(`${process.execPath} -e "${connects}"`), 'OPEN')
  })
  const { output, errors } = await run('env_1', '', {
    command: [process.execPath, '-e', program],
    variables: { LISTED: allowed.split(':')[1] ?? '' },
    allowed_hosts: [allowed],
  })
  t.equal(errors, '')
  t.notMatch(output, 'OPEN')
  t.notMatch(output, 'INTERNAL')
  t.notMatch(output, 'SENT')
  const lines = output.trim().split('\n')
  const answers = (method: string) => lines.filter((line) => line.startsWith(`${method} `))
  t.equal(answers('connect').length, 12)
  for (const line of answers('connect')) t.match(line, / 403$/)
  for (const line of answers('get')) t.match(line, / 403 /)
  for (const line of answers('direct'))
    t.match(line, /(ENETUNREACH|ECONNREFUSED|ENOTFOUND|EAI_AGAIN)$/)
  t.match(output, `gateway gateway: GET /v1/x for 127.0.0.1:${own}\n`, 'the gateway is reached')
  t.match(output, 'listed 200 LISTED\n')
  t.match(output, /file 400 .* 400 /)
  denied(t, 'addresses', answers('connect').join(' | '))
})

t.test('a log of the worker that is no log', { skip }, async (t) => {
  const { run, log, data } = await stage(t, 'sandbox')
  writeFileSync(join(data, 'root.key'), SECRET)
  const paths = [join(data, 'root.key'), '../../../../root.key', '/etc/passwd']
  for (const path of paths) {
    await run('env_1', `ln -sf ${path} "$ACME_WORKER_LOG_DIR/worker.log"`)
    t.equal(await log('env_1', 'worker'), '', path)
  }
  // The log folder becomes a link, so the path of the log leads elsewhere.
  await run('env_1', `cd /var/worker && mv logs x && ln -s ${data} logs`)
  writeFileSync(join(data, 'worker.log'), SECRET)
  t.equal(await log('env_1', 'worker'), '')
  await run('env_1', 'mkfifo "$ACME_WORKER_LOG_DIR/worker.log"')
  t.equal(await log('env_1', 'worker'), '', 'a pipe without a writer does not block')
})

t.test('a fork bomb is bounded', { skip }, async (t) => {
  const { run, provider } = await stage(t, 'sandbox', {
    limits: { ...limits, processes: 40 },
  })
  const { output } = await run(
    'env_1',
    'i=0; while [ $i -lt 200 ]; do (sleep 1000020 & echo made) 2>/dev/null; i=$((i+1)); done; ' +
      'echo tried; exit 3',
  )
  const made = output.split('\n').filter((line) => line === 'made').length
  t.ok(made > 0 && made < 40, `${made} of 200 processes`)
  t.strictSame(processesWith('1000020'), [], 'none is left')
  await provider.destroy('env_1')
  denied(t, 'processes above the limit', `${200 - made} of 200`)
})

t.test('a memory bomb is ended', { skip }, async (t) => {
  const { run } = await stage(t, 'sandbox', { limits: { ...limits, memory_bytes: 128 * MIB } })
  const bomb =
    'const all = []; while (all.length < 64) { all.push(Buffer.alloc(8 * 2 ** 20, 1)); console.log(all.length) }'
  const { output, exit } = await run('env_1', '', { command: [process.execPath, '-e', bomb] })
  const mebibytes = 8 * Number(output.trim().split('\n').at(-1))
  t.ok(mebibytes > 0 && mebibytes <= 128, `${mebibytes} MiB were allocated`)
  t.match(exit, { idle: false, error: /exceeded the memory limit of 128 MiB|exit code|signal/ })
  denied(t, 'memory', `${exit.error} (${mebibytes} MiB)`)
})

t.test('file systems in memory are bounded', { skip }, async (t) => {
  const { run } = await stage(t, 'sandbox', { limits: { ...limits, memory_bytes: 256 * MIB } })
  const { output } = await run(
    'env_1',
    'for f in /tmp /dev/shm "$HOME"; do head -c 100000000 /dev/zero 2>&1 >$f/fill | ' +
      'tail -n 1; wc -c <$f/fill; rm $f/fill; done',
  )
  const sizes = output.split('\n').filter((line) => /^\d+$/.test(line))
  t.equal(sizes.length, 3)
  for (const size of sizes) t.ok(Number(size) <= 64 * MIB, `${size} bytes`)
  denied(t, 'more than 64 MiB', sizes.join(' '))
})

t.test('a disk fill is stopped', { skip }, async (t) => {
  const { run, start, provider } = await stage(t, 'sandbox', {
    limits: { ...limits, disk_bytes: 16 * MIB },
    measure_ms: 50,
  })
  const { exit, output } = await run(
    'env_1',
    'head -c 30000000 /dev/zero >one; wc -c one; ' +
      'i=0; while [ $i -lt 200 ]; do head -c 1000000 /dev/zero >$i; i=$((i+1)); sleep 0.05; done',
  )
  t.match(output, `${16 * MIB} one`, 'one file has at most the limit')
  t.match(exit, { idle: false, error: /files of the environment use \d+ MiB.*16 MiB.*stopped/ })
  await t.rejects(start('env_1', 'true', { generation: 2 }), {
    message: /files of the environment use \d+ bytes/,
  })
  await provider.destroy('env_1')
  denied(t, 'files', exit.error ?? '')
})

t.test('an output bomb is bounded', { skip }, async (t) => {
  const { run, data } = await stage(t, 'sandbox')
  const { exit, output } = await run('env_1', 'yes 0123456789 | head -c 50000000; echo; echo end')
  t.match(exit, { exit_code: 0 })
  t.equal(output.slice(-5), '\nend\n', 'the newest output is kept')
  const folder = join(data, 'environments/env_1/logs')
  const sizes = readdirSync(folder).map((name) => readFileSync(join(folder, name)).length)
  t.ok(sizes.reduce((sum, size) => sum + size, 0) < 9 * MIB, sizes.join(' '))
  denied(t, 'output', `${sizes.join(' + ')} bytes of 50000000 are kept`)
})

t.test('no process is left when an environment is removed', { skip }, async (t) => {
  const { provision, start, provider, log } = await stage(t, 'sandbox')
  await provision('env_1')
  await start(
    'env_1',
    'env -i setsid sh -c "trap : TERM HUP INT; sleep 1000030 & exec sleep 1000030" & ' +
      '(setsid nohup sleep 1000030 &) ; echo ready; wait',
  )
  await until(async () => (await log('env_1')) !== '')
  await until(() => processesWith('sleep', '1000030').length > 0)
  await provider.destroy('env_1')
  t.strictSame(processesWith('1000030'), [])
})
