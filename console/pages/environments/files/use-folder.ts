import { useEffect, useState } from 'preact/hooks'
import { ApiError } from '../../../api/client.ts'
import { type Folder, listFolder, type Workspace } from './access.ts'

/** The folder at a path. `folder` is undefined until its entries have been loaded. */
export interface LoadedFolder {
  readonly folder: Folder | undefined
  readonly loading: boolean
  readonly error: ApiError | undefined
  reload(): void
}

/** Loads a folder of a workspace, and loads it again when `reload` is called. */
export function useFolder(of: Workspace, path: string): LoadedFolder {
  const [loaded, setLoaded] = useState<{ readonly path: string; readonly of: Folder }>()
  const [error, setError] = useState<ApiError>()
  const [loading, setLoading] = useState(true)
  const [loads, setLoads] = useState(0)
  const { project, id } = of
  useEffect(() => {
    let current = true
    setLoading(true)
    setError(undefined)
    listFolder(of, path)
      .then(
        (found) => current && setLoaded({ path, of: found }),
        (fault: unknown) => {
          if (!(fault instanceof ApiError)) throw fault
          if (current) setError(fault)
        },
      )
      .finally(() => current && setLoading(false))
    return () => {
      current = false
    }
  }, [project, id, path, loads])
  return {
    folder: loaded?.path === path ? loaded.of : undefined,
    loading,
    error,
    reload: () => setLoads((before) => before + 1),
  }
}
