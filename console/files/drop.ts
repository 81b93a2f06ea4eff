/** Files dropped on a part of a page. The browser handles text and other content. */
import { useState } from 'preact/hooks'

/** The event handlers of a drop target, and whether files are dragged over it. */
interface FileDrop {
  readonly over: boolean
  readonly target: {
    readonly onDragOver: (event: DragEvent) => void
    readonly onDragLeave: (event: DragEvent) => void
    readonly onDrop: (event: DragEvent) => void
  }
}

/**
 * Makes an element a drop target for files.
 * @param allowed whether files are accepted.
 * @param take called with the dropped files.
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
