/** For responses, which leave out fields that are not set. */
export const omitNulls = <View>(row: object): View =>
  Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)) as View;
