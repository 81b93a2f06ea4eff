/**
 * Resource limits of workers: control groups of both versions, and limits of single processes where
 * there are no control groups.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { type Hierarchy, openGroups, settingsOf } from '../../../../nodes/hosts/local/limits.ts'
import { dataFolder, limits, MIB, skipped, stage } from './stage.ts'

const controllers = ['memory', 'pids', 'cpu'] as const
/** Node 24 reserves 512 MiB for compiled code when it starts, which count towards the limit. */
const MEMORY_MIB = Number(process.versions.modules) > 127 ? 700 : 300

t.test('without control groups, single processes are limited', async (t) => {
  for (const kind of ['sandbox', 'user'] as const)
    await t.test(kind, { skip: skipped[kind] }, async (t) => {
      const { run, provider } = await stage(t, kind, {
        groups: false,
        limits: { ...limits, memory_bytes: MEMORY_MIB * MIB, processes: 30 },
      })
      t.ok(
        provider.isolation.includes(
          `limits by resource limits of processes: ${MEMORY_MIB} MiB of memory for`,
        ),
      )
      const { output } = await run(
        'env_1',
        'ulimit -d; ulimit -c; ulimit -f; i=0; ' +
          'while [ $i -lt 60 ]; do (sleep 100 & echo made) 2>/dev/null; i=$((i+1)); done; exit 0',
      )
      t.match(output, `${MEMORY_MIB * 1024}\n0\n`)
      const made = output.split('\n').filter((line) => line === 'made').length
      t.ok(made > 0 && made < 30, `${made} processes`)
      const bomb =
        'const a = []; while (a.length < 100) { a.push(Buffer.alloc(8 * 2 ** 20, 1)); console.log(a.length) }'
      const { output: sizes, exit } = await run('env_2', '', {
        command: [process.execPath, '-e', bomb],
      })
      t.ok(8 * Number(sizes.trim().split('\n').at(-1)) <= MEMORY_MIB, 'memory is limited')
      t.equal(exit.idle, false)
    })
})

t.test('a group of version 1 for each controller', { skip: real() }, async (t) => {
  const groups = await openGroups('baton-test-limits', limits)
  t.ok(groups)
  if (!groups) return
  const group = await groups.create('one', limits)
  t.ok(group.join.every((file) => existsSync(file)))
  t.equal(await group.oomKills(), 0)
  await group.remove()
  t.notOk(group.join.some((file) => existsSync(file)))
  await groups.create('left', limits)
  await groups.clear()
  await groups.close()
  t.notOk(group.join.some((file) => existsSync(join(file, '../..'))))
})
function real(): string | false {
  const writable = existsSync('/sys/fs/cgroup/pids/pids.max') || existsSync('/sys/fs/cgroup/pids')
  return !(writable && process.getuid?.() === 0) && 'this machine has no writable control groups'
}

t.test('controllers of version 2 are enabled, and limits have their names', async (t) => {
  t.strictSame(
    controllers.flatMap((name) => settingsOf(2, name, { ...limits, cpus: 1.5 })),
    [
      { file: 'memory.max', value: String(512 * MIB) },
      { file: 'memory.swap.max', value: '0', optional: true },
      { file: 'pids.max', value: '100' },
      { file: 'cpu.max', value: '150000 100000' },
    ],
  )
  // Ordinary files stand in for the kernel's control files. The test checks only what is written.
  const folder = dataFolder(t)
  const make = (path: string) => {
    mkdirSync(path, { recursive: true })
    writeFileSync(join(path, 'cgroup.controllers'), 'cpuset cpu memory pids\n')
    writeFileSync(join(path, 'cgroup.subtree_control'), '')
    for (const name of ['memory.max', 'memory.swap.max', 'pids.max', 'cpu.max', 'cgroup.procs'])
      writeFileSync(join(path, name), '')
  }
  for (const path of ['', 'baton-x', 'baton-x/one']) make(join(folder, path))
  const found: Hierarchy = {
    version: 2,
    folders: Object.fromEntries(controllers.map((name) => [name, folder])),
  }
  // The folder of the probe cannot be removed, because it contains ordinary files. A kernel would
  // remove the control files together with the group.
  t.equal(await openGroups('baton-x', limits, [found]), undefined)
  t.equal(readFileSync(join(folder, 'cgroup.subtree_control'), 'utf8'), '+memory +pids +cpu')
})

t.test('a hierarchy without the controllers is not used', async (t) => {
  const folder = dataFolder(t)
  writeFileSync(join(folder, 'cgroup.controllers'), 'hugetlb\n')
  const found: Hierarchy = {
    version: 2,
    folders: Object.fromEntries(controllers.map((name) => [name, folder])),
  }
  t.equal(await openGroups('baton-x', limits, [found]), undefined)
  t.equal(await openGroups('baton-x', limits, [{ version: 1, folders: {} }]), undefined)
})
