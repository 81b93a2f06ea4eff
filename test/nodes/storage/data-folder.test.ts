/** Data folders that can and cannot be created. */
import { existsSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { StartFault } from '../../../nodes/process/fault.ts'
import { ensureDataFolder } from '../../../nodes/storage/data-folder.ts'

t.test('a data folder is created with its parents, for its owner only', async (t) => {
  const data = join(t.testdir(), 'a/b')
  ensureDataFolder(data)
  ensureDataFolder(data)
  t.equal(statSync(data).mode & 0o777, 0o700)
  t.equal(statSync(join(data, '..')).mode & 0o777, 0o700)
})

t.test('a folder that cannot be created is reported', async (t) => {
  const folder = t.testdir()
  const refused = (data: string, message: RegExp) =>
    t.throws(() => ensureDataFolder(data), { name: StartFault.name, message })
  writeFileSync(join(folder, 'file'), '')
  refused(join(folder, 'file'), /file cannot be used: a file is at this path/)
  refused(join(folder, 'file/data'), /cannot be used: a file is at this path/)
  symlinkSync(join(folder, 'nowhere/at/all'), join(folder, 'link'))
  refused(join(folder, 'link'), /cannot be used/)
  if (existsSync('/proc/self')) refused('/proc/baton/data', /it cannot be created \(ENOENT\)/)
})
