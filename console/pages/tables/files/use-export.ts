import { useRef, useState } from 'preact/hooks'
import { showDone, showError } from '../../../design/notify.ts'
import { tablesText as text } from '../text.ts'
import { type ExportFormat, exportRows } from './export.ts'

type Source = Omit<Parameters<typeof exportRows>[0], 'format'>

/** Exports rows to a file. `count` is the number of rows so far; undefined if no export runs. */
export function useExport() {
  const [count, setCount] = useState<number>()
  const control = useRef<AbortController | undefined>(undefined)
  return {
    count,
    async start(source: Source, format: ExportFormat): Promise<void> {
      const own = new AbortController()
      control.current = own
      setCount(0)
      try {
        showDone(text.exported(await exportRows({ ...source, format }, own.signal, setCount)))
      } catch (fault) {
        if (!own.signal.aborted) showError(fault)
      } finally {
        setCount(undefined)
      }
    },
    stop: () => control.current?.abort(new DOMException('stopped', 'AbortError')),
  }
}
