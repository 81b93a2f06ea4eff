/** Saves an export of a project or of one blueprint as a file. */
import { call } from '../../api/client.ts'
import { showDone } from '../../design/notify.ts'
import { saveFile } from '../audit/save-file.ts'
import { blueprintsText as text } from './text.ts'

/** Loads the export and saves it as a JSON file that can be applied as it is. */
export async function exportFile(
  project: string,
  { namespace, key }: { readonly namespace: string; readonly key: string },
): Promise<void> {
  const exported = await call('blueprint.export', {
    project,
    ...(namespace !== '' && { namespace }),
    ...(key !== '' && { blueprint_key: key }),
  })
  const name = `${(key || project).replaceAll(/[^\w.-]+/g, '-')}.json`
  saveFile(name, 'application/json', `${JSON.stringify(exported, undefined, 2)}\n`)
  showDone(text.exported)
}
