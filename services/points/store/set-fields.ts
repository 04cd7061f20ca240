/** The row without what is null: what is not set is left out of every answer. */
export const setFields = <Row extends object>(row: Row): Row =>
  Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)) as Row;
