import { Button } from '../../../design/button.tsx'
import { setQuery } from '../../../router/router.ts'
import { environmentsText as text } from '../text.ts'

export const nameOf = (path: string): string => path.split('/').at(-1) ?? path
export const folderOf = (path: string): string => path.split('/').slice(0, -1).join('/')

/** The path of the folder that is shown. Each part opens its folder. */
export function FolderPath({ path }: { readonly path: string }) {
  const names = path === '' ? [] : path.split('/')
  const open = (folder: string): void => setQuery({ path: folder, file: '' }, { push: true })
  return (
    <nav class="row path" aria-label={text.path}>
      <Button kind="quiet" onClick={() => open('')}>
        {text.workspace}
      </Button>
      {names.map((name, index) => (
        <span class="row" key={index}>
          <span class="soft">/</span>
          <Button kind="quiet" onClick={() => open(names.slice(0, index + 1).join('/'))}>
            <span class="user-text">{name}</span>
          </Button>
        </span>
      ))}
    </nav>
  )
}
