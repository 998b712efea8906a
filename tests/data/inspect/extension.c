/* A stand-in for a compiled extension: symbols of torch that it does not define, and device code in named sections. */
extern int _ZN3c104cuda9SetDeviceEab(signed char, int);
extern void _ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE(void);
extern int aoti_torch_get_device_index(void);
extern void *memcpy(void *, const void *, unsigned long);
int entry(void *to, const void *from, unsigned long size) {
  memcpy(to, from, size);
  _ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE();
  return _ZN3c104cuda9SetDeviceEab(0, 1) + aoti_torch_get_device_index();
}
__attribute__((section(".rodata"))) const char options[] = "\0spir64_gen\0-device pvc,bmg-g21\0";
