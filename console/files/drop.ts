/** Files that are dropped on a part of a page. Text and other content is left to the browser. */
import { useState } from 'preact/hooks'

/** What an element needs to take files, and whether files are held over it. */
interface FileDrop {
  readonly over: boolean
  readonly target: {
    readonly onDragOver: (event: DragEvent) => void
    readonly onDragLeave: (event: DragEvent) => void
    readonly onDrop: (event: DragEvent) => void
  }
}

/**
 * Uses an element as a target of files.
 * @param allowed whether files are taken.
 * @param take called with the files of a drop.
 */
export function useFileDrop(allowed: boolean, take: (files: readonly File[]) => void): FileDrop {
  const [over, setOver] = useState(false)
  const concerns = ({ dataTransfer }: DragEvent): boolean =>
    allowed && dataTransfer?.types.includes('Files') === true
  return {
    over,
    target: {
      onDragOver: (event) => {
        if (!concerns(event)) return
        event.preventDefault()
        setOver(true)
      },
      onDragLeave: ({ currentTarget, relatedTarget }) => {
        if (!(currentTarget as Node).contains(relatedTarget as Node | null)) setOver(false)
      },
      onDrop: (event) => {
        if (!concerns(event)) return
        event.preventDefault()
        setOver(false)
        take([...(event.dataTransfer?.files ?? [])])
      },
    },
  }
}
