/** The actions on files: contents, lists, and the confinement of paths to the workspace. */
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { rename, symlink, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { deleteFile, readFile, writeFile } from '../../../client/environment/actions/files.ts'
import { listFiles } from '../../../client/environment/actions/list.ts'
import { execute, failure, workspaceOf } from './support.ts'

t.test('a file is written, appended to, read in parts and deleted', async (t) => {
  const { workspace, inside } = await workspaceOf(t)
  const [write, read, remove] = [writeFile(workspace), readFile(workspace), deleteFile(workspace)]
  const path = 'notes/today.md'
  t.strictSame(await execute(write, { path, content: 'grün\n' }), { path, bytes_written: 6 })
  await execute(write, { path, content: '€', append: true })
  t.strictSame(await execute(read, { path }), {
    path,
    encoding: 'text',
    content: 'grün\n€',
    truncated: false,
  })
  // The first 8 bytes end inside the euro sign, which has three bytes.
  const part = await execute(read, { path, max_bytes: 8 })
  t.match(part, { content: 'grün\n', truncated: true, next_offset: 6 })
  t.match(await execute(read, { path, offset: 6 }), { content: '€', truncated: false })
  t.match(await execute(read, { path, offset: 100 }), { content: '', truncated: false })
  t.match(await execute(read, { path, encoding: 'base64', max_bytes: 2 }), {
    content: Buffer.from('gr').toString('base64'),
    next_offset: 2,
  })
  await execute(write, { path, content: '#!/bin/sh\n', mode: '755' })
  t.equal(statSync(join(inside, path)).mode & 0o777, 0o755)
  await execute(write, { path, content: 'new' })
  t.equal(statSync(join(inside, path)).mode & 0o777, 0o755, 'the mode stays')
  t.strictSame(readdirSync(join(inside, 'notes')), ['today.md'], 'no temporary file stays')
  const bytes = Buffer.from([0, 255, 128])
  await execute(write, { path: 'b', content: bytes.toString('base64'), encoding: 'base64' })
  t.strictSame(readFileSync(join(inside, 'b')), bytes)
  t.match(await execute(read, { path: 'b' }), { note: /not UTF-8 text/ })
  t.strictSame(await execute(remove, { path }), { path, deleted: true })
  t.strictSame(await execute(remove, { path }), { path, deleted: false })
  t.match(await failure(read, { path }), { name: 'not_found', message: `${path} does not exist` })
})

t.test('folders are deleted only on request, and the workspace never', async (t) => {
  const { workspace, inside, outside } = await workspaceOf(t)
  const remove = deleteFile(workspace)
  mkdirSync(join(inside, 'a/b'), { recursive: true })
  writeFileSync(join(outside, 'kept'), '')
  symlinkSync(outside, join(inside, 'a/b/link'))
  t.match(await failure(remove, { path: 'a' }), { name: 'not_empty' })
  t.match(await execute(remove, { path: 'a', recursive: true }), { deleted: true })
  t.notOk(existsSync(join(inside, 'a')))
  t.ok(existsSync(join(outside, 'kept')), 'what a link names stays')
  for (const path of ['.', '', '/', 'x/..', inside])
    t.match((await failure(remove, { path, recursive: true })).name, /invalid|outside/, path)
  t.ok(existsSync(inside))
})

t.test('the newest files are listed first', async (t) => {
  const { workspace, inside } = await workspaceOf(t)
  const list = listFiles(workspace)
  mkdirSync(join(inside, 'src/.git'), { recursive: true })
  for (const [name, at] of Object.entries({ old: 10, 'src/new': 30, 'src/.git/x': 40, mid: 20 })) {
    writeFileSync(join(inside, name), name)
    utimesSync(join(inside, name), at, at)
  }
  for (const name of ['src', 'src/.git']) utimesSync(join(inside, name), 5, 5)
  const names = ({ entries }: Record<string, unknown>) =>
    (entries as { path: string }[]).map(({ path }) => path)
  const top = await execute(list)
  t.strictSame(names(top), ['mid', 'old', 'src'])
  t.match(top, { path: '.', truncated: false, entries: [{ dir: false, size: 3 }] })
  const all = await execute(list, { recursive: true })
  t.strictSame(names(all), ['src/new', 'mid', 'old', 'src', 'src/.git'])
  t.match(all, { note: /\.git/ })
  const part = await execute(list, { recursive: true, max_entries: 1 })
  t.match(part, { truncated: true, note: /newest 1 of 5/ })
  t.strictSame(names(part), ['src/new'])
  t.match(await execute(list, { path: 'src' }), { path: 'src', entries: [{ path: 'src/new' }] })
  t.match(await failure(list, { path: 'mid' }), { name: 'not_a_directory' })
})

t.test('no path leads out of the workspace', async (t) => {
  const { workspace, inside, outside } = await workspaceOf(t)
  writeFileSync(join(outside, 'secret'), 'secret')
  symlinkSync(join(outside, 'secret'), join(inside, 'file-link'))
  symlinkSync(outside, join(inside, 'folder-link'))
  symlinkSync('folder-link', join(inside, 'second-link'))
  symlinkSync(join(outside, 'absent'), join(inside, 'dangling'))
  symlinkSync('loop', join(inside, 'loop'))
  const paths = [
    '../secret',
    join(outside, 'secret'),
    'a/../../secret',
    'file-link',
    'folder-link/secret',
    'second-link/secret',
    'dangling',
    'folder-link/new/deep',
    '/etc/passwd',
    '/proc/self/environ',
    'loop',
  ]
  for (const path of paths) {
    t.match(
      (await failure(readFile(workspace), { path })).name,
      /outside_workspace|not_found/,
      path,
    )
    const written = await failure(writeFile(workspace), { path, content: 'x' })
    t.match(written.name, /outside_workspace|not_found/, path)
  }
  for (const path of ['..', 'folder-link', 'second-link', '/'])
    t.match(await failure(listFiles(workspace), { path }), { name: 'outside_workspace' }, path)
  t.match(await failure(deleteFile(workspace), { path: 'folder-link/secret' }), {
    name: 'outside_workspace',
  })
  t.equal(readFileSync(join(outside, 'secret'), 'utf8'), 'secret')
  t.strictSame(readdirSync(outside).sort(), ['secret', 'workspace'])
  // Links that stay inside the workspace are followed, and paths may be absolute.
  writeFileSync(join(inside, 'real'), 'real')
  symlinkSync('real', join(inside, 'alias'))
  t.match(await execute(readFile(workspace), { path: 'alias' }), { path: 'real', content: 'real' })
  t.match(await execute(readFile(workspace), { path: join(inside, 'real') }), { content: 'real' })
})

t.test('random paths reach nothing outside', async (t) => {
  const { workspace, inside, outside } = await workspaceOf(t)
  const secret = 'outside of the workspace'
  writeFileSync(join(outside, 'f'), secret)
  mkdirSync(join(inside, 'd'))
  symlinkSync('..', join(inside, 'd/up'))
  symlinkSync('../..', join(inside, 'd/out'))
  symlinkSync(outside, join(inside, 'd/abs'))
  const segment = fc.constantFrom('..', '.', 'd', 'f', 'up', 'out', 'abs', 'workspace', '', 'new')
  await fc.assert(
    fc.asyncProperty(fc.array(segment, { minLength: 1, maxLength: 8 }), async (segments) => {
      const path = segments.join('/') || '.'
      for (const action of [readFile(workspace), writeFile(workspace), deleteFile(workspace)])
        await execute(action, { path, content: 'written' }).then(
          (result) => {
            if (result['content'] === secret) throw new Error(`${path} was read`)
          },
          (error: Error) => {
            if (!/^[a-z_]+$/.test(error.name)) throw error
          },
        )
      return (
        readFileSync(join(outside, 'f'), 'utf8') === secret &&
        readdirSync(outside).sort().join() === 'f,workspace'
      )
    }),
    { numRuns: 200 },
  )
})

t.test('a folder that becomes a link meanwhile is not followed', async (t) => {
  const { workspace, inside, outside } = await workspaceOf(t)
  mkdirSync(join(inside, 'd'))
  mkdirSync(join(outside, 'target'))
  await workspace.use('d/file', {}, async ({ path }) => {
    rmSync(join(inside, 'd'), { recursive: true })
    symlinkSync(join(outside, 'target'), join(inside, 'd'))
    t.throws(() => writeFileSync(path, 'x'), { code: 'ENOENT' })
  })
  t.strictSame(readdirSync(join(outside, 'target')), [])
})

t.test('folders and links that are exchanged all the time lead nowhere else', async (t) => {
  const { workspace, inside, outside } = await workspaceOf(t)
  const [folder, kept] = [join(inside, 'd'), join(inside, 'kept')]
  mkdirSync(folder)
  writeFileSync(join(folder, 'f'), 'inside')
  mkdirSync(join(outside, 'target'))
  writeFileSync(join(outside, 'target/f'), 'outside')
  let running = true
  const exchanging = (async () => {
    while (running) {
      await rename(folder, kept)
      await symlink(join(outside, 'target'), folder)
      await unlink(folder)
      await rename(kept, folder)
    }
  })()
  const seen = new Map<string, number>()
  for (let n = 0; n < 1000; n++) {
    const { content, name } = await execute(readFile(workspace), { path: 'd/f' }).then(
      (result) => ({ content: String(result['content']), name: '' }),
      (error: Error) => ({ content: '', name: error.name }),
    )
    seen.set(content || name, (seen.get(content || name) ?? 0) + 1)
  }
  running = false
  await exchanging
  t.notOk(seen.has('outside'))
  t.ok(seen.has('inside'))
  const expected = ['inside', 'not_found', 'not_a_directory', 'outside_workspace']
  t.strictSame(
    [...seen.keys()].filter((one) => !expected.includes(one)),
    [],
  )
})

t.test('only regular files are read and written', async (t) => {
  const { workspace, inside } = await workspaceOf(t)
  mkdirSync(join(inside, 'd'))
  execFileSync('mkfifo', [join(inside, 'pipe')])
  for (const action of [readFile(workspace), writeFile(workspace)]) {
    t.match(await failure(action, { path: 'd', content: '' }), { name: 'is_a_directory' })
    t.match(await failure(action, { path: 'pipe', content: '' }), { name: 'not_a_file' })
  }
})
