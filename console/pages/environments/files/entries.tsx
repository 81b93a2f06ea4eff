import { IconButton } from '../../../design/button.tsx'
import { designText } from '../../../design/text.ts'
import { Time } from '../../../design/time.tsx'
import { setQuery } from '../../../router/router.ts'
import { formatBytes, formatNumber } from '../../../text/format.ts'
import { environmentsText as text } from '../text.ts'
import type { Entry } from './access.ts'
import { nameOf } from './path.tsx'

interface EntryActions {
  onDownload(entry: Entry): void | Promise<void>
  /** Absent if the person may not delete files. */
  readonly onDelete?: ((entry: Entry) => void) | undefined
}

/** The files and folders of a folder. A name opens its folder or the preview of its file. */
export function EntryTable({
  entries,
  ...actions
}: { readonly entries: readonly Entry[] } & EntryActions) {
  return (
    <div class="table-frame files">
      <table class="table">
        <thead>
          <tr>
            <th scope="col">{text.name}</th>
            <th scope="col">{text.kind}</th>
            <th scope="col" class="number">
              {text.size}
            </th>
            <th scope="col">{text.modified}</th>
            <th scope="col">
              <span class="unseen">{text.actions}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {entries.map((entry) => (
            <EntryRow key={entry.path} entry={entry} {...actions} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

function EntryRow({ entry, onDownload, onDelete }: { readonly entry: Entry } & EntryActions) {
  const name = nameOf(entry.path)
  return (
    <tr>
      <td class="name">
        <button
          type="button"
          class="link user-text"
          onClick={() =>
            setQuery(entry.dir ? { path: entry.path, file: '' } : { file: entry.path }, {
              push: true,
            })
          }
        >
          {name}
          {entry.dir && '/'}
        </button>
      </td>
      <td class="soft">{entry.dir ? text.folder : text.file}</td>
      <td class="number" title={formatNumber(entry.size)}>
        {entry.dir ? '' : formatBytes(entry.size)}
      </td>
      <td class="nowrap">
        <Time at={entry.modified_at} relative />
      </td>
      <td class="number nowrap">
        {!entry.dir && (
          <IconButton
            icon="download"
            label={designText.about(text.download, name)}
            onClick={() => onDownload(entry)}
          />
        )}
        {onDelete && (
          <IconButton
            icon="trash"
            danger
            label={text.deleteFileOf(name)}
            onClick={() => onDelete(entry)}
          />
        )}
      </td>
    </tr>
  )
}
